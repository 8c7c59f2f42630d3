"""Who may become a role of bootstrap.yaml, and the most that its roles can ever be."""

import fnmatch
import json
from typing import Any

import pytest

from tests.support.aws import Aws
from tests.support.stack import (
    decided,
    load,
    properties_by_name,
    properties_of,
    role_statements,
)
from tools.deployment import bootstrap
from tools.deployment.stage import DeploymentError

BOOTSTRAP = decided(
    "bootstrap.yaml",
    Stage="staging",
    Owner="octo",
    OwnerId="5",
    Repository="animals",
    RepositoryId="7",
    CreateOidcProvider="false",
    CreateApiGatewayLoggingRole="false",
)
ROLES = properties_by_name(BOOTSTRAP, "AWS::IAM::Role")
BOUNDARY = BOOTSTRAP["Resources"]["Boundary"]["Properties"]["PolicyDocument"]
ACCOUNT = "arn:AWS::Partition:iam::AWS::AccountId"


@pytest.mark.parametrize(
    ("role", "environment"), [("DeployRole", "staging"), ("CheckRole", "staging-check")]
)
def test_only_jobs_of_an_environment_on_main_of_one_repository_become_a_role(
    role: str, environment: str
) -> None:
    github = "token.actions.githubusercontent.com"
    assert ROLES[role]["AssumeRolePolicyDocument"]["Statement"] == [
        {
            "Effect": "Allow",
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Principal": {"Federated": f"{ACCOUNT}:oidc-provider/{github}"},
            "Condition": {
                "StringEquals": {
                    f"{github}:aud": "sts.amazonaws.com",
                    f"{github}:environment": environment,
                    f"{github}:ref": "refs/heads/main",
                    f"{github}:repository_id": "7",
                    f"{github}:sub": [
                        f"repo:octo/animals:environment:{environment}",
                        f"repo:octo@5/animals@7:environment:{environment}",
                    ],
                }
            },
        }
    ]


@pytest.mark.parametrize(
    ("role", "principal", "condition"),
    [
        ("ApiGatewayLoggingRole", {"Service": "apigateway.amazonaws.com"}, {}),
        ("ExecutionRole", {"Service": "cloudformation.amazonaws.com"}, {}),
        (
            "OperatorRole",
            {"AWS": f"{ACCOUNT}:root"},
            {"Condition": {"Bool": {"aws:MultiFactorAuthPresent": "true"}}},
        ),
    ],
)
def test_only_a_service_or_people_with_mfa_become_the_other_roles(
    role: str, principal: dict[str, str], condition: dict[str, Any]
) -> None:
    assert ROLES[role]["AssumeRolePolicyDocument"]["Statement"] == [
        {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal}
        | condition
    ]


def test_no_role_can_change_these_roles_by_their_path() -> None:
    """What each may do is in test_permissions.py, but for the role of API Gateway."""
    assert {role["Path"] for role in ROLES.values()} == {"/animal-store-bootstrap/"}
    (policy,) = ROLES["ApiGatewayLoggingRole"]["ManagedPolicyArns"]
    assert policy.endswith("/AmazonAPIGatewayPushToCloudWatchLogs")


def test_the_boundary_is_this_and_no_more() -> None:
    statements = BOUNDARY["Statement"]
    shift = [
        "lambda:GetAlias",
        "lambda:GetProvisionedConcurrencyConfig",
        "lambda:UpdateAlias",
    ]
    assert {each["Effect"] for each in statements} == {"Allow"}
    assert [(each["Action"], each["Resource"]) for each in statements] == [
        (
            ["dynamodb:*Item", "dynamodb:Query"],
            "arn:AWS::Partition:dynamodb:AWS::Region:AWS::AccountId:table/animal-store-staging-*",
        ),
        (
            ["logs:CreateLogStream", "logs:PutLogEvents"],
            "arn:AWS::Partition:logs:AWS::Region:AWS::AccountId:log-group:animal-store-staging-*",
        ),
        (
            shift,
            "arn:AWS::Partition:lambda:AWS::Region:AWS::AccountId:function:animal-store-staging-*",
        ),
        ("cloudwatch:DescribeAlarms", "*"),
    ]


def test_the_boundary_allows_every_action_of_the_stacks_roles() -> None:
    def actions(statement: dict[str, Any]) -> list[str]:
        named = statement["Action"]
        return [named] if isinstance(named, str) else named

    missing = {
        action
        for _, statement in role_statements(load("template.yaml"))
        for action in actions(statement)
    }
    for statement in BOUNDARY["Statement"]:
        for pattern in actions(statement):
            missing -= set(fnmatch.filter(missing, pattern))
    assert missing == set(), "Add them to Boundary in bootstrap.yaml."


MAIN = {"type": "branch", "name": "main"}
ENVIRONMENT = "gh api repos/octo/animals/environments/production"
GITHUB: dict[str, dict[str, Any]] = {
    "gh api repos/octo/animals": {"id": 7, "owner": {"id": 5}},
    ENVIRONMENT: {
        "id": 8,
        "deployment_branch_policy": {"protected_branches": False},
    },
    f"{ENVIRONMENT}/deployment-branch-policies": {"branch_policies": [MAIN]},
}
SESSION = """\
production: account 123456789012, eu-central-1, as arn:aws:iam::123456789012:eve
$ SAM_CLI_TELEMETRY=0 gh api repos/octo/animals/environments/production
$ SAM_CLI_TELEMETRY=0 gh api \
repos/octo/animals/environments/production/deployment-branch-policies
$ SAM_CLI_TELEMETRY=0 gh api repos/octo/animals
apigateway:GetAccount
cloudformation:ListStackResources animal-store-production-bootstrap
$ SAM_CLI_TELEMETRY=0 sam deploy --template-file bootstrap.yaml --stack-name \
animal-store-production-bootstrap --capabilities CAPABILITY_IAM \
--no-fail-on-empty-changeset --no-progressbar --parameter-overrides Stage=production \
Owner=octo Repository=animals OwnerId=5 RepositoryId=7 CreateApiGatewayLoggingRole=true
ArtifactBucketName: bucket
ExecutionRoleArn: role/execution
PermissionsBoundaryArn: policy/boundary
"""


def prepare(aws: Aws, **other: Any) -> str:
    """Prepare the account, while GitHub answers with another value of a member."""
    for question, answer in GITHUB.items():
        answered = {name: other.get(name, value) for name, value in answer.items()}
        aws.results[question] = 0, json.dumps(answered)
    parameters = ["CreateApiGatewayLoggingRole=true"]
    bootstrap.bootstrap(aws.stage, "octo/animals", parameters)
    return aws.session()


def test_the_role_with_which_other_apis_write_logs_is_kept(aws: Aws) -> None:
    assert prepare(aws) == SESSION

    aws.answers["apigateway:GetAccount"] = {"cloudwatchRoleArn": "role/theirs"}
    with pytest.raises(DeploymentError, match="role/theirs, for every API"):
        prepare(aws)
    aws.session()

    resources = aws.answers["cloudformation:ListStackResources"]
    role = {"LogicalResourceId": "ApiGatewayLoggingRole", "ResourceType": "Role"}
    resources["StackResourceSummaries"] += [role | {"PhysicalResourceId": "ours"}]
    aws.answers["apigateway:GetAccount"] = {"cloudwatchRoleArn": "role/bootstrap/ours"}
    assert prepare(aws) == SESSION

    aws.answers["apigateway:GetAccount"] = {"cloudwatchRoleArn": "role/theirs"}
    with pytest.raises(DeploymentError, match="role/theirs, for every API"):
        prepare(aws)
    assert not aws.changed()


@pytest.mark.parametrize(
    ("part", "answer"),
    [
        ("deployment_branch_policy", None),
        ("deployment_branch_policy", {"protected_branches": True}),
        ("branch_policies", []),
        ("branch_policies", [{"type": "tag", "name": "main"}]),
        ("branch_policies", [MAIN, {"type": "branch", "name": "release/*"}]),
    ],
)
def test_an_environment_that_more_than_main_may_use_is_refused(
    aws: Aws, part: str, answer: Any
) -> None:
    with pytest.raises(DeploymentError, match="more than main"):
        prepare(aws, **{part: answer})
    assert not aws.changed()


def test_artifacts_are_kept() -> None:
    resources = BOOTSTRAP["Resources"]
    for name in ["OidcProvider", "ApiGatewayAccount", "ArtifactBucket"]:
        assert resources[name]["DeletionPolicy"] == "RetainExceptOnCreate"
    assert resources["ArtifactBucket"]["Properties"]["LifecycleConfiguration"] == {
        "Rules": [
            {
                "Id": "overwritten",
                "Status": "Enabled",
                "NoncurrentVersionExpiration": {"NoncurrentDays": 365},
                "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
            }
        ]
    }
    document = resources["ArtifactBucketPolicy"]["Properties"]["PolicyDocument"]
    (statement,) = document["Statement"]
    bucket = "ArtifactBucket.Arn"
    assert statement == {
        "Sid": "EncryptedConnectionsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [bucket, f"{bucket}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


def test_an_account_gets_what_it_lacks_and_a_budget_when_asked_for() -> None:
    assert "True" not in str(BOOTSTRAP["Conditions"] | BOOTSTRAP["Rules"])
    most = decided("bootstrap.yaml", MonthlyBudget="5", BudgetEmail="a@b.c")
    assert "False" not in str(most["Conditions"] | most["Rules"])
    budget = properties_of(most, "AWS::Budgets::Budget")
    (mail,) = budget["NotificationsWithSubscribers"]
    assert mail["Notification"]["ComparisonOperator"] == "GREATER_THAN"
    assert mail["Notification"]["Threshold"] == 80
