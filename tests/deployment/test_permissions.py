"""The rights of bootstrap.yaml's roles, evaluated: none is missing, and none is for nothing.

Of production: the stages have one bootstrap.yaml.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.iam import Policy, Request, entries, evaluate
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

# What the stack's resources get as ARNs; CloudFormation makes a name of NAME, the template's.
ARNS = Path(__file__).with_name("stack_arns.txt").read_text("utf-8").split()

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
TABLE_IN_USE = (
    "arn:aws:dynamodb:eu-central-1:123456789012:table/"
    "animal-store-production-AnimalsTable-20B3C4D5E6F7"
)
READS = ("dynamodb:Select", "SPECIFIC_ATTRIBUTES")
# What CloudFormation and API Gateway ask for without a handler that says so.
TRANSFORM = "arn:aws:cloudformation:eu-central-1:aws:transform/Serverless-2016-10-31"
SERVICE_ROLE = (
    "arn:aws:iam::123456789012:role/aws-service-role/ops.apigateway.amazonaws.com/Role"
)
OTHER_ALARM = "arn:aws:cloudwatch:eu-central-1:123456789012:alarm:other"
BESIDE_THE_HANDLERS = [
    Request("cloudformation:CreateChangeSet", (TRANSFORM,)),
    Request("cloudwatch:DescribeAlarms", (OTHER_ALARM,)),
    Request("cloudwatch:PutCompositeAlarm", (OTHER_ALARM,)),
    Request("iam:CreateServiceLinkedRole", (SERVICE_ROLE,)),
]


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
            service = ("iam:PassedToService", "cloudformation.amazonaws.com")
            requests.append(Request(action, (arn,), (READS, service)))
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
    arns = tuple(
        arn.replace("NAME", name) for arn in ARNS if arn.split(":")[2] in services
    )
    for action in actions - NOT_SET:
        if action.partition(":")[0] in services:
            yield Request(action, arns, context)


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


OTHER_BOUNDARY = ("iam:PermissionsBoundary", f"{BOUNDARY}-of-another")
OTHER_SERVICE = ("iam:PassedToService", "ec2.amazonaws.com")


@pytest.mark.parametrize("context", [(), (OTHER_BOUNDARY, OTHER_SERVICE)])
def test_roles_are_changed_only_with_the_boundary_and_passed_only_to_services(
    stack: list[Request], context: tuple[tuple[str, str], ...]
) -> None:
    asked = [each._replace(context=context) for each in stack]
    assert refused_actions("ExecutionRole", asked) == {
        "iam:AttachRolePolicy",
        "iam:CreateRole",
        "iam:DeleteRolePolicy",
        "iam:DetachRolePolicy",
        "iam:PassRole",
        "iam:PutRolePermissionsBoundary",
        "iam:PutRolePolicy",
    }
    own = calls(CHECK, PIPELINE, OPERATOR, BY_HAND)
    asked = [each._replace(context=context) for each in own]
    assert refused_actions("OperatorRole", asked) == {"iam:PassRole"}


OWN_NAME = re.compile("animal-store-(production|bootstrap/execution)")


def statements_on_others(role: str, requests: list[Request]) -> set[str]:
    """Return a role's statements that allow something on what is not named after its stage."""
    asked = []
    for action, resources, context in requests:
        for arn in resources:
            # As the roles of bootstrap.yaml itself are named.
            other = OWN_NAME.sub("animal-store-bootstrap/a", arn)
            if other != arn:
                asked.append(Request(action, (other,), context))
    _, unused = evaluate(policy(role), asked)
    return {each.partition(":")[0] for each in entries(policy(role)) - unused}


def test_no_role_reaches_another_stage_or_the_roles_of_bootstrap(
    stack: list[Request],
) -> None:
    own = calls(CHECK, PIPELINE, OPERATOR, BY_HAND)
    assert statements_on_others("ExecutionRole", stack) == {"WhatKnowsNoResource"}
    assert statements_on_others("OperatorRole", own) == {"ReadWhatKnowsNoResource"}


READS_NAMES = (("dynamodb:Attributes", "name"), READS)


@pytest.mark.parametrize("context", [(), READS_NAMES])
@pytest.mark.parametrize("role", ["CheckRole", "DeployRole", "ExecutionRole"])
def test_only_an_operator_reaches_animals(
    role: str, context: tuple[tuple[str, str], ...]
) -> None:
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
    requests = [Request(action, (TABLE_IN_USE,), context) for action in actions]
    assert refused_actions(role, requests) == actions


def test_an_operator_deletes_copies_but_no_table_in_use() -> None:
    request = Request("dynamodb:DeleteTable", (TABLE_IN_USE,))
    assert refused_actions("OperatorRole", [request]) == {"dynamodb:DeleteTable"}
