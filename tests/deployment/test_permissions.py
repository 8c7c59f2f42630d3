"""The rights of bootstrap.yaml's roles, evaluated: none is missing, and none is for nothing.

Of production; test_bootstrap.py compares the stages.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.iam import Policy, Request, evaluate
from tests.support.stack import load, parameters
from tools.deployment.template import resolve
from tools.packaging.translate import translate

BOOTSTRAP = load("bootstrap.yaml")
# What the commands ask for, as a rehearsal recorded it, with what CloudFormation and DynamoDB ask
# besides (amazondynamodb/latest/developerguide/backuprestore_IAM.html); and, by hand, what
# docs/runbook.md does.
CHECK, PIPELINE, OPERATOR, BY_HAND = (
    Path(__file__).with_name(f"{name}_calls.txt")
    for name in ("check", "pipeline", "operator", "by_hand")
)
NOTHING_REFUSED_OR_UNUSED: tuple[list[str], set[str]] = ([], set())

REGION = "eu-central-1"
BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"
BUCKET = "arn:aws:s3:::animal-store-production-bootstrap-artifactbucket-1a2b3c4d"
# What the pseudo parameters and resources of bootstrap.yaml stand for.
NAMES = {
    "ArtifactBucket.Arn": BUCKET,
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": "animal-store-production-bootstrap",
    "Boundary": BOUNDARY,
    "ExecutionRole.Arn": "arn:aws:iam::123456789012:role/animal-store-bootstrap/execution",
    "Stage": "production",
}

# What the resources of each type get as ARNs; {name} is a name that CloudFormation makes.
API = "arn:aws:apigateway:eu-central-1::/restapis"
API_STAGE = "arn:aws:apigateway:eu-central-1::/restapis/a1b2/stages/production"
TAGS = "arn:aws:apigateway:eu-central-1::/tags/a1b2"
DOMAINS = "arn:aws:apigateway:eu-central-1::/domainnames"
MAPPINGS = (
    "arn:aws:apigateway:eu-central-1::/domainnames/api.example.com/basepathmappings"
)
FUNCTION = "arn:aws:lambda:eu-central-1:123456789012:function:{name}"
LAYER = "arn:aws:lambda:eu-central-1:123456789012:layer:animal-store-production-common"
LOG_GROUP = "arn:aws:logs:eu-central-1:123456789012:log-group:{name}"
TOPIC = "arn:aws:sns:eu-central-1:123456789012:{name}"
ALARM = "arn:aws:cloudwatch:eu-central-1:123456789012:alarm:{name}"
TABLE = "arn:aws:dynamodb:eu-central-1:123456789012:table/{name}"
RULE = "arn:aws:events:eu-central-1:123456789012:rule/{name}"
WEB_ACL = "arn:aws:wafv2:eu-central-1:123456789012:regional/webacl/animal-store-production/1a2b"
ROLE = "arn:aws:iam::123456789012:role/{name}"
CODE = (
    "arn:aws:s3:::animal-store-production-bootstrap-artifactbucket-1a2b3c4d/code/1a2b"
)
DEPLOYMENTS = (
    "arn:aws:codedeploy:eu-central-1:123456789012:application:{name}",
    "arn:aws:codedeploy:eu-central-1:123456789012:deploymentgroup:{name}/{name}",
    "arn:aws:codedeploy:eu-central-1:123456789012:deploymentconfig:CodeDeployDefault.LambdaAllAtOnce",
)
ARNS = {
    "AWS::ApiGateway::BasePathMapping": (
        MAPPINGS,
        "arn:aws:apigateway:eu-central-1::/domainnames/api.example.com/basepathmappings/(none)",
    ),
    "AWS::ApiGateway::Deployment": (
        "arn:aws:apigateway:eu-central-1::/restapis/a1b2/deployments",
        "arn:aws:apigateway:eu-central-1::/restapis/a1b2/deployments/c3d4",
    ),
    "AWS::ApiGateway::DomainName": (
        DOMAINS,
        "arn:aws:apigateway:eu-central-1::/domainnames/api.example.com",
        TAGS,
    ),
    "AWS::ApiGateway::RestApi": (
        API,
        "arn:aws:apigateway:eu-central-1::/restapis/a1b2",
        TAGS,
    ),
    "AWS::ApiGateway::Stage": (
        "arn:aws:apigateway:eu-central-1::/restapis/a1b2/stages",
        API_STAGE,
        TAGS,
    ),
    "AWS::CloudWatch::Alarm": (ALARM,),
    "AWS::CloudWatch::CompositeAlarm": (ALARM,),
    "AWS::CloudWatch::Dashboard": (
        "arn:aws:cloudwatch::123456789012:dashboard/animal-store-production",
    ),
    "AWS::CodeDeploy::Application": DEPLOYMENTS,
    "AWS::CodeDeploy::DeploymentGroup": (*DEPLOYMENTS, ROLE),
    "AWS::DynamoDB::Table": (TABLE,),
    "AWS::Events::Rule": (RULE,),
    "AWS::IAM::Role": (ROLE,),
    "AWS::Lambda::Alias": (
        FUNCTION,
        "arn:aws:lambda:eu-central-1:123456789012:function:{name}:live",
        *DEPLOYMENTS,
    ),
    "AWS::Lambda::Function": (
        FUNCTION,
        ROLE,
        CODE,
        "arn:aws:lambda:eu-central-1:123456789012:layer:animal-store-production-common:7",
    ),
    "AWS::Lambda::LayerVersion": (
        LAYER,
        "arn:aws:lambda:eu-central-1:123456789012:layer:animal-store-production-common:7",
        CODE,
    ),
    "AWS::Lambda::Permission": (FUNCTION,),
    "AWS::Lambda::Version": (
        FUNCTION,
        "arn:aws:lambda:eu-central-1:123456789012:function:{name}:7",
    ),
    "AWS::Logs::LogGroup": (
        LOG_GROUP,
        "arn:aws:logs:eu-central-1:123456789012:log-group:{name}:log-stream:1a2b",
    ),
    "AWS::Logs::MetricFilter": (LOG_GROUP,),
    "AWS::SNS::Subscription": (TOPIC,),
    "AWS::SNS::Topic": (TOPIC,),
    "AWS::WAFv2::WebACL": (WEB_ACL,),
    "AWS::WAFv2::WebACLAssociation": (WEB_ACL, API_STAGE),
}

PASSED_TO = {
    "AWS::CodeDeploy::DeploymentGroup": "codedeploy.amazonaws.com",
    "AWS::Lambda::Function": "lambda.amazonaws.com",
}
# Besides its own service a handler asks others, for what the template sets of it.
OTHER_SERVICES = {
    "AWS::CodeDeploy::DeploymentGroup": {"iam"},
    "AWS::Lambda::Alias": {"codedeploy"},
    "AWS::Lambda::Function": {"iam", "s3"},
    "AWS::Lambda::LayerVersion": {"s3"},
    "AWS::WAFv2::WebACLAssociation": {"apigateway"},
}
# Needed only for what the template does not set: machines; imports, replicas, policies and streams
# of tables; a role
# without a boundary, code signing, index policies and deliveries of logs, shared firewall rules.
NOT_SET = {
    "codedeploy:RegisterOnPremisesInstance",
    "dynamodb:AssociateTableReplica",
    "dynamodb:BatchWriteItem",
    "dynamodb:CreateTableReplica",
    "dynamodb:DeleteItem",
    "dynamodb:DeleteResourcePolicy",
    "dynamodb:DescribeImport",
    "dynamodb:DisableKinesisStreamingDestination",
    "dynamodb:EnableKinesisStreamingDestination",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:PutResourcePolicy",
    "dynamodb:Query",
    "dynamodb:Scan",
    "dynamodb:UpdateItem",
    "dynamodb:UpdateKinesisStreamingDestination",
    "iam:DeleteRolePermissionsBoundary",
    "lambda:AssociateRuntimeAlias",
    "lambda:GetCodeSigningConfig",
    "lambda:PassCapacityProvider",
    "logs:CreateLogDelivery",
    "logs:DeleteIndexPolicy",
    "logs:DeleteResourcePolicy",
    "logs:PutIndexPolicy",
    "logs:PutResourcePolicy",
    "wafv2:GetPermissionPolicy",
    "wafv2:PutPermissionPolicy",
}
TABLE_IN_USE = TABLE.format(name="animal-store-production-AnimalsTable-20B3C4D5E6F7")
# What CloudFormation and API Gateway ask for without a handler that says so.
TRANSFORM = "arn:aws:cloudformation:eu-central-1:aws:transform/Serverless-2016-10-31"
SERVICE_ROLE = (
    "arn:aws:iam::123456789012:role/aws-service-role/ops.apigateway.amazonaws.com/Role"
)
BESIDE_THE_HANDLERS = [
    Request("cloudformation:CreateChangeSet", (TRANSFORM,)),
    Request("cloudwatch:DescribeAlarms", (ALARM,)),
    Request("iam:CreateServiceLinkedRole", (SERVICE_ROLE,)),
]


def arns(name: str, kind: str) -> tuple[str, ...]:
    """Return the ARNs that a resource of the stack gets."""
    return tuple(
        arn.format(name=f"animal-store-production-{name}-1A2B") for arn in ARNS[kind]
    )


def policy(role: str) -> Policy:
    """Return all that a role of bootstrap.yaml may do."""
    resources = BOOTSTRAP["Resources"]
    properties = resources[role]["Properties"]
    statements = []
    for each in properties.get("Policies", []):
        statements += each["PolicyDocument"]["Statement"]
    for each in properties.get("ManagedPolicyArns", []):
        attached = resources[each["Ref"]]["Properties"]
        statements += attached["PolicyDocument"]["Statement"]
    return {"Version": "2012-10-17", "Statement": resolve(statements, NAMES)}


def calls(*files: Path) -> list[Request]:
    """Return the requests that files list."""
    requests = []
    for file in files:
        for line in file.read_text("utf-8").splitlines():
            action, arn = line.split()
            context = (
                ("dynamodb:Select", "SPECIFIC_ATTRIBUTES"),
                ("iam:PassedToService", "cloudformation.amazonaws.com"),
            )
            requests.append(Request(action, (arn,), context))
    return requests


def requests_of_handlers(name: str, kind: str) -> Iterator[Request]:
    """Yield what the schema of a resource says that CloudFormation needs for it."""
    # Here, because it takes seconds.
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]

    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, kind).schema
    actions = set(schema.get("tagging", {}).get("permissions", ()))
    for operation, handler in schema["handlers"].items():
        if operation != "list":
            actions |= set(handler["permissions"])
    services = {kind.split("::")[1].lower()} | OTHER_SERVICES.get(kind, set())
    context = (
        ("iam:PassedToService", PASSED_TO.get(kind, "")),
        ("iam:PermissionsBoundary", BOUNDARY),
    )
    for action in actions - NOT_SET:
        if action.partition(":")[0] in services:
            yield Request(action, arns(name, kind), context)


@pytest.fixture(scope="module")
def stack() -> list[Request]:
    """Return what CloudFormation asks for production's stack."""
    requests = [*BESIDE_THE_HANDLERS]
    for name, resource in translate(parameters("production"))["Resources"].items():
        requests += requests_of_handlers(name, resource["Type"])
    return requests


def test_cloudformation_may_make_each_resource_and_nothing_else(
    stack: list[Request],
) -> None:
    assert evaluate(policy("ExecutionRole"), stack) == NOTHING_REFUSED_OR_UNUSED


@pytest.mark.parametrize(
    ("role", "files"),
    [
        ("CheckRole", [CHECK]),
        ("DeployRole", [CHECK, PIPELINE]),
        ("OperatorRole", [CHECK, PIPELINE, OPERATOR, BY_HAND]),
    ],
)
def test_a_role_may_make_its_calls_and_nothing_else(
    role: str, files: list[Path]
) -> None:
    assert evaluate(policy(role), calls(*files)) == NOTHING_REFUSED_OR_UNUSED


def refused_actions(role: str, requests: list[Request]) -> set[str]:
    refused, _ = evaluate(policy(role), requests)
    return {each.partition(" on ")[0] for each in refused}


def without_context(requests: list[Request]) -> list[Request]:
    return [each._replace(context=()) for each in requests]


def test_roles_are_changed_only_with_the_boundary_and_passed_only_to_services(
    stack: list[Request],
) -> None:
    assert refused_actions("ExecutionRole", without_context(stack)) == {
        "iam:AttachRolePolicy",
        "iam:CreateRole",
        "iam:DeleteRolePolicy",
        "iam:DetachRolePolicy",
        "iam:PassRole",
        "iam:PutRolePermissionsBoundary",
        "iam:PutRolePolicy",
    }
    own = without_context(calls(CHECK, PIPELINE, OPERATOR, BY_HAND))
    assert refused_actions("OperatorRole", own) == {"iam:PassRole"}


def allowed_on_others(role: str, requests: list[Request]) -> set[str]:
    """Return the actions that a role may do on what is not named after its stage."""
    asked = []
    for action, resources, context in requests:
        for arn in resources:
            # As the roles of bootstrap.yaml itself are named.
            other = arn.replace("animal-store-production", "animal-store-bootstrap/a")
            if other != arn:
                asked.append(Request(action, (other,), context))
    return {each.action for each in asked} - refused_actions(role, asked)


def test_no_role_reaches_another_stage_or_the_roles_of_bootstrap(
    stack: list[Request],
) -> None:
    own = calls(CHECK, PIPELINE, OPERATOR, BY_HAND)
    # These know no resource.
    assert allowed_on_others("ExecutionRole", stack) == {
        "cloudwatch:DescribeAlarms",
        "cloudwatch:PutCompositeAlarm",
        "codedeploy:StopDeployment",
        "logs:DescribeIndexPolicies",
        "logs:DescribeLogGroups",
        "logs:DescribeResourcePolicies",
    }
    assert allowed_on_others("OperatorRole", own) == {
        "cloudwatch:DescribeAlarms",
        "logs:DescribeLogGroups",
    }


@pytest.mark.parametrize("role", ["CheckRole", "DeployRole", "ExecutionRole"])
def test_only_an_operator_reaches_animals(role: str) -> None:
    actions = {
        "dynamodb:BatchGetItem",
        "dynamodb:DeleteItem",
        "dynamodb:EnableKinesisStreamingDestination",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:PutResourcePolicy",
        "dynamodb:Query",
        "dynamodb:RestoreTableToPointInTime",
        "dynamodb:Scan",
        "dynamodb:UpdateItem",
    }
    requests = [Request(action, (TABLE_IN_USE,)) for action in actions]
    assert refused_actions(role, requests) == actions


def test_an_operator_deletes_copies_but_no_table_in_use() -> None:
    request = Request("dynamodb:DeleteTable", (TABLE_IN_USE,))
    assert refused_actions("OperatorRole", [request]) == {"dynamodb:DeleteTable"}
