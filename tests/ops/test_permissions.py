"""What each role of ops/bootstrap.yaml may do and may not, evaluated: a table per role."""

from typing import Any

import pytest

from tests.support.iam import Request, evaluate
from tests.support.stack import decided

_TEXT = """\
*            *
alarm        arn:aws:cloudwatch:eu-west-1:123456789012:alarm:animal-store-production-Alarm-1
animals      arn:aws:dynamodb:eu-west-1:123456789012:table/animal-store-production-AnimalsTable-1
api          arn:aws:apigateway:eu-west-1::/restapis/a1b2
artifact     arn:aws:s3:::bucket/artifact.zip
backups      arn:aws:backup:eu-west-1:123456789012:backup-vault:animal-store-production
bootstrap    arn:aws:cloudformation:eu-west-1:123456789012:stack/animal-store-production-bootstrap/1
bucket       arn:aws:s3:::bucket
copy         arn:aws:dynamodb:eu-west-1:123456789012:table/animal-store-production-Table-copy-1
execution    arn:aws:iam::123456789012:role/animal-store-bootstrap/execution
function     arn:aws:lambda:eu-west-1:123456789012:function:animal-store-production-ListPets-1
keys         arn:aws:dynamodb:eu-west-1:123456789012:table/animal-store-production-ApiKeysTable-1
layer        arn:aws:lambda:eu-west-1:123456789012:layer:animal-store-production-common:7
log          arn:aws:logs:eu-west-1:123456789012:log-group:animal-store-production-1
others-code  arn:aws:lambda:eu-west-1:123456789012:function:payroll
others-stack arn:aws:cloudformation:eu-west-1:123456789012:stack/payroll/1
others-table arn:aws:dynamodb:eu-west-1:123456789012:table/payroll
role         arn:aws:iam::123456789012:role/animal-store-production-ListPetsRole-1
rule         arn:aws:events:eu-west-1:123456789012:rule/animal-store-production-ListPetsHeartbeat-1
stack        arn:aws:cloudformation:eu-west-1:123456789012:stack/animal-store-production/1
stream       arn:aws:logs:eu-west-1:123456789012:log-group:animal-store-production-1:log-stream:1
topic        arn:aws:sns:eu-west-1:123456789012:animal-store-production-AlarmTopic-1
"""
ARNS = dict(line.split() for line in _TEXT.splitlines())
# What ops/bootstrap.yaml's names stand for.
NAMES = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::StackName": "animal-store-production-bootstrap",
    "ArtifactBucket.Arn": "arn:aws:s3:::bucket",
    "ExecutionRole.Arn": "arn:aws:iam::123456789012:role/animal-store-bootstrap/execution",
}
# Of a line: a verdict, a resource, and actions, with what a request says of itself.
TABLES = {
    "CheckRole": """
may bootstrap    cloudformation:DescribeStacks
may stack        cloudformation:DescribeStacks cloudformation:ListStackResources
may stack        cloudformation:DetectStackDrift cloudformation:DescribeStackResourceDrifts
may *            cloudformation:DescribeStackDriftDetectionStatus
may api          apigateway:GET
may alarm        cloudwatch:DescribeAlarms
may *            cloudwatch:ListMetrics cloudwatch:GetMetricStatistics
may animals      dynamodb:DescribeTable dynamodb:DescribeContinuousBackups
may animals      dynamodb:Query dynamodb:Select=SPECIFIC_ATTRIBUTES dynamodb:Attributes=id
may artifact     s3:GetObject
may bucket       s3:ListBucket
may function     lambda:GetFunction lambda:GetAlias
may keys         dynamodb:Scan dynamodb:DescribeTable
may keys         dynamodb:PutItem dynamodb:LeadingKeys=00a1
may layer        lambda:GetLayerVersion
may log          logs:DescribeMetricFilters
may role         iam:GetRole iam:GetRolePolicy iam:ListAttachedRolePolicies iam:ListRolePolicies
may rule         events:DescribeRule
may topic        sns:ListSubscriptionsByTopic
not keys         dynamodb:PutItem dynamodb:LeadingKeys=0a1b
not keys         dynamodb:UpdateItem dynamodb:DeleteItem dynamodb:BatchWriteItem
not animals      dynamodb:Query dynamodb:Select=SPECIFIC_ATTRIBUTES dynamodb:Attributes=name
not animals      dynamodb:Query dynamodb:Select=ALL_ATTRIBUTES dynamodb:Attributes=id
not animals      dynamodb:GetItem dynamodb:PutItem dynamodb:Scan dynamodb:UpdateTable
not api          apigateway:PATCH
not artifact     s3:PutObject
not backups      backup:DeleteBackupVault
not function     lambda:InvokeFunction lambda:UpdateAlias
not log          logs:FilterLogEvents
not role         iam:PutRolePolicy
not stack        cloudformation:CreateChangeSet
not execution    iam:PassRole iam:PassedToService=cloudformation.amazonaws.com
not others-stack cloudformation:DescribeStacks
not others-code  lambda:GetFunction
""",
    "DeployRole": """
may stack        cloudformation:CreateChangeSet cloudformation:ExecuteChangeSet
may stack        cloudformation:SetStackPolicy cloudformation:UpdateTerminationProtection
may stack        cloudformation:DescribeStackEvents
may artifact     s3:PutObject
may execution    iam:PassRole iam:PassedToService=cloudformation.amazonaws.com
not execution    iam:PassRole iam:PassedToService=ec2.amazonaws.com
not execution    iam:PutRolePolicy iam:UpdateAssumeRolePolicy
not role         iam:PassRole iam:PassedToService=cloudformation.amazonaws.com
not artifact     s3:DeleteObject s3:DeleteObjectVersion
not stack        cloudformation:DeleteStack
not bootstrap    cloudformation:CreateChangeSet
not backups      backup:DeleteBackupVault backup:DeleteBackupVaultLockConfiguration
not animals      dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateTable dynamodb:DeleteTable
not keys         dynamodb:UpdateItem dynamodb:PutItem dynamodb:LeadingKeys=0a1b
not function     lambda:UpdateFunctionCode lambda:InvokeFunction
not others-stack cloudformation:CreateChangeSet
""",
    "OperatorRole": """
may animals      dynamodb:DescribeTable dynamodb:RestoreTableToPointInTime
may animals      dynamodb:GetItem dynamodb:Query dynamodb:PutItem dynamodb:UpdateItem
may animals      dynamodb:DeleteItem dynamodb:UpdateTable dynamodb:UpdateTimeToLive
may copy         dynamodb:DescribeTable dynamodb:Scan dynamodb:DeleteTable
may copy         dynamodb:RestoreTableToPointInTime dynamodb:BatchWriteItem
may keys         dynamodb:GetItem dynamodb:Scan dynamodb:PutItem dynamodb:UpdateItem
may function     lambda:UpdateAlias
may log          logs:FilterLogEvents logs:StartQuery
may *            logs:GetQueryResults
may stack        cloudformation:ContinueUpdateRollback cloudformation:CancelUpdateStack
may stack        cloudformation:DescribeEvents
not animals      dynamodb:DeleteTable
not keys         dynamodb:DeleteTable
not backups      backup:DeleteBackupVault backup:DeleteBackupVaultLockConfiguration
not function     lambda:UpdateFunctionCode
not role         iam:PutRolePolicy
not others-table dynamodb:GetItem
""",
    "ExecutionRole": """
may alarm        cloudwatch:PutMetricAlarm
may *            cloudwatch:PutCompositeAlarm logs:DescribeLogGroups
may animals      dynamodb:CreateTable dynamodb:UpdateTable dynamodb:UpdateContinuousBackups
may api          apigateway:PUT
may artifact     s3:GetObject
may function     lambda:CreateFunction lambda:PublishVersion lambda:UpdateAlias
may log          logs:CreateLogGroup logs:PutRetentionPolicy logs:PutMetricFilter
may role         iam:CreateRole iam:PutRolePolicy iam:PermissionsBoundary=Boundary
may role         iam:PassRole iam:PassedToService=lambda.amazonaws.com
may rule         events:PutRule events:PutTargets
may topic        sns:CreateTopic sns:Subscribe
not role         iam:CreateRole iam:PutRolePolicy iam:PermissionsBoundary=Administrator
not role         iam:CreateRole iam:AttachRolePolicy iam:DeleteRolePermissionsBoundary
not role         iam:PassRole iam:PassedToService=ec2.amazonaws.com
not execution    iam:PutRolePolicy iam:PermissionsBoundary=Boundary
not execution    iam:PassRole iam:PassedToService=lambda.amazonaws.com
not animals      dynamodb:DeleteTable dynamodb:GetItem dynamodb:PutItem dynamodb:Scan
not animals      dynamodb:PutResourcePolicy dynamodb:EnableKinesisStreamingDestination
not keys         dynamodb:DeleteTable dynamodb:RestoreTableToPointInTime
not artifact     s3:PutObject
not backups      backup:DeleteBackupVault backup:DeleteBackupVaultLockConfiguration
not others-code  lambda:UpdateFunctionCode
not others-table dynamodb:UpdateTable
""",
    "Boundary": """
may animals      dynamodb:GetItem dynamodb:PutItem dynamodb:Query dynamodb:UpdateItem
may function     lambda:UpdateAlias
may stream       logs:PutLogEvents
may alarm        cloudwatch:DescribeAlarms
not animals      dynamodb:DeleteItem dynamodb:BatchWriteItem dynamodb:Scan
not animals      dynamodb:UpdateTable dynamodb:DeleteTable
not artifact     s3:GetObject
not role         iam:PassRole iam:PassedToService=lambda.amazonaws.com
not role         iam:CreateRole iam:PutRolePolicy
not others-table dynamodb:GetItem
""",
}


def policy(role: str) -> Any:
    """Return all that a role of production's ops/bootstrap.yaml may do."""
    stack = decided("ops/bootstrap.yaml", Stage="production", **NAMES)["Resources"]
    properties = stack[role]["Properties"]
    policies = [
        stack[name]["Properties"] for name in properties.get("ManagedPolicyArns", [])
    ]
    statements = []
    for each in properties.get("Policies", policies) or [properties]:
        statements += each["PolicyDocument"]["Statement"]
    return {"Version": "2012-10-17", "Statement": statements}


def requests(line: str) -> list[Request]:
    """Return the requests of a table's line."""
    verdict, resource, *words = line.split()
    request = {
        "allowed": verdict == "may",
        "context": dict(word.split("=") for word in words if "=" in word),
        "resource": ARNS[resource],
    }
    return [request | {"action": word} for word in words if "=" not in word]


@pytest.mark.parametrize("role", TABLES)
def test_a_role_may_do_what_its_table_says(role: str) -> None:
    expected = []
    for line in TABLES[role].strip().splitlines():
        expected += requests(line)

    assert evaluate(policy(role), expected) == expected
