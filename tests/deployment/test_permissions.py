"""The rights of bootstrap.yaml's roles, evaluated: none is missing, and none is for nothing."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from cfnlint.decode import cfn_yaml  # type: ignore[import-untyped]
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]

from tests.support import pipeline_calls
from tests.support.iam import ACCOUNT, REGION, Evaluation, Policy, Request, evaluate
from tests.support.stack import parameters, properties_by_name, resolve
from tools import ROOT
from tools.packaging.translate import translate

BOOTSTRAP = cfn_yaml.load(str(ROOT / "bootstrap.yaml"))
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/boundary"
EXECUTION_ROLE = f"arn:aws:iam::{ACCOUNT}:role/animal-store-bootstrap/execution"
NOTHING_REFUSED_OR_UNUSED = Evaluation(refused=[], unused=set())

# What the resources of each type get as ARNs; {name} is a name that CloudFormation makes.
HERE = f"{REGION}:{ACCOUNT}"
API = f"arn:aws:apigateway:{REGION}::/restapis"
TAGS = f"arn:aws:apigateway:{REGION}::/tags/a1b2"
DOMAINS = f"arn:aws:apigateway:{REGION}::/domainnames"
FUNCTION = f"arn:aws:lambda:{HERE}:function:{{name}}"
LAYER = f"arn:aws:lambda:{HERE}:layer:{{stack}}-common"
LOG_GROUP = f"arn:aws:logs:{HERE}:log-group:{{name}}"
TOPIC = f"arn:aws:sns:{HERE}:{{name}}"
WEB_ACL = f"arn:aws:wafv2:{HERE}:regional/webacl/{{stack}}/1a2b"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/{{name}}"
CODE = "arn:aws:s3:::{stack}-bootstrap-artifactbucket-1a2b3c4d/code/1a2b"
DEPLOYMENT_GROUP = f"arn:aws:codedeploy:{HERE}:deploymentgroup:{{name}}/{{name}}"
DEPLOYMENTS = (
    f"arn:aws:codedeploy:{HERE}:application:{{name}}",
    DEPLOYMENT_GROUP,
    f"arn:aws:codedeploy:{HERE}:deploymentconfig:CodeDeployDefault.LambdaAllAtOnce",
)
ARNS = {
    "AWS::ApiGateway::BasePathMapping": (
        f"{DOMAINS}/api.example.com/basepathmappings",
        f"{DOMAINS}/api.example.com/basepathmappings/(none)",
    ),
    "AWS::ApiGateway::Deployment": (
        f"{API}/a1b2/deployments",
        f"{API}/a1b2/deployments/c3d4",
    ),
    "AWS::ApiGateway::DomainName": (DOMAINS, f"{DOMAINS}/api.example.com", TAGS),
    "AWS::ApiGateway::RestApi": (API, f"{API}/a1b2", TAGS),
    "AWS::ApiGateway::Stage": (
        f"{API}/a1b2/stages",
        f"{API}/a1b2/stages/{{stage}}",
        TAGS,
    ),
    "AWS::CloudWatch::Alarm": (f"arn:aws:cloudwatch:{HERE}:alarm:{{name}}",),
    "AWS::CloudWatch::Dashboard": (
        f"arn:aws:cloudwatch::{ACCOUNT}:dashboard/{{stack}}",
    ),
    "AWS::CodeDeploy::Application": DEPLOYMENTS,
    "AWS::CodeDeploy::DeploymentGroup": (*DEPLOYMENTS, ROLE),
    "AWS::DynamoDB::Table": (f"arn:aws:dynamodb:{HERE}:table/{{name}}",),
    "AWS::IAM::Role": (ROLE,),
    "AWS::Lambda::Alias": (FUNCTION, f"{FUNCTION}:live", *DEPLOYMENTS),
    "AWS::Lambda::Function": (FUNCTION, ROLE, CODE, f"{LAYER}:7"),
    "AWS::Lambda::LayerVersion": (LAYER, f"{LAYER}:7", CODE),
    "AWS::Lambda::Permission": (FUNCTION,),
    "AWS::Lambda::Version": (FUNCTION, f"{FUNCTION}:7"),
    "AWS::Logs::LogGroup": (LOG_GROUP, f"{LOG_GROUP}:log-stream:1a2b"),
    "AWS::Logs::MetricFilter": (LOG_GROUP,),
    "AWS::SNS::Subscription": (TOPIC,),
    "AWS::SNS::Topic": (TOPIC,),
    "AWS::WAFv2::WebACL": (WEB_ACL,),
    "AWS::WAFv2::WebACLAssociation": (WEB_ACL, f"{API}/a1b2/stages/{{stage}}"),
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
# Needed only for what the template does not set: machines, imports and replicas of tables, a role
# without a boundary, code signing, index policies and deliveries of logs, shared firewall rules.
NOT_SET = {
    "codedeploy:RegisterOnPremisesInstance",
    "dynamodb:AssociateTableReplica",
    "dynamodb:BatchWriteItem",
    "dynamodb:CreateTableReplica",
    "dynamodb:DeleteItem",
    "dynamodb:DescribeImport",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:Scan",
    "dynamodb:UpdateItem",
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
# What CloudFormation and API Gateway ask for without a handler that says so.
TRANSFORM = f"arn:aws:cloudformation:{REGION}:aws:transform/Serverless-2016-10-31"
SERVICE_ROLE = (
    f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/ops.apigateway.amazonaws.com/Role"
)
BESIDE_THE_HANDLERS = [
    Request("cloudformation:CreateChangeSet", (TRANSFORM,)),
    Request(
        "cloudwatch:DescribeAlarms", (f"arn:aws:cloudwatch:{HERE}:alarm:of-others",)
    ),
    Request("iam:CreateServiceLinkedRole", (SERVICE_ROLE,)),
]
# What a shift of an alias without hooks needs of AWSCodeDeployRoleForLambdaLimited.
OF_CODEDEPLOY = (
    "lambda:GetAlias",
    "lambda:GetProvisionedConcurrencyConfig",
    "lambda:UpdateAlias",
)


@cache
def resources(stage: str) -> dict[str, Any]:
    """Return what the stack of a stage is made of."""
    made: dict[str, Any] = translate(parameters(stage))["Resources"]
    return made


def arns(stage: str, name: str, kind: str) -> tuple[str, ...]:
    """Return the ARNs that a resource gets."""
    stack = f"animal-store-{stage}"
    names = {"stack": stack, "stage": stage, "name": f"{stack}-{name}-1A2B3C4D"}
    return tuple(arn.format(**names) for arn in ARNS[kind])


def policy(resource: str, stage: str) -> Policy:
    """Return a policy of bootstrap.yaml, for one stage."""
    properties = BOOTSTRAP["Resources"][resource]["Properties"]
    document = properties["Policies"][0] if "Policies" in properties else properties
    names = {
        "ArtifactBucket.Arn": CODE.format(stack=f"animal-store-{stage}").removesuffix(
            "/code/1a2b"
        ),
        "AWS::AccountId": ACCOUNT,
        "AWS::Partition": "aws",
        "AWS::Region": REGION,
        "AWS::StackName": f"animal-store-{stage}-bootstrap",
        "Boundary": BOUNDARY,
        "ExecutionRole.Arn": EXECUTION_ROLE,
        "Stage": stage,
    }
    resolved: Policy = resolve(document["PolicyDocument"], names)
    return resolved


def of_the_handlers(stage: str) -> Iterator[Request]:
    """Yield what the schema of each resource says that CloudFormation needs for it."""
    for name, resource in resources(stage).items():
        kind = resource["Type"]
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, kind).schema
        actions = set(schema.get("tagging", {}).get("permissions", ()))
        for operation in {"create", "read", "update", "delete"} & schema[
            "handlers"
        ].keys():
            actions |= set(schema["handlers"][operation]["permissions"])
        services = {kind.split("::")[1].lower()} | OTHER_SERVICES.get(kind, set())
        context = (
            ("iam:PassedToService", PASSED_TO.get(kind, "")),
            ("iam:PermissionsBoundary", BOUNDARY),
        )
        for action in actions - NOT_SET:
            if action.partition(":")[0] in services:
                yield Request(action, arns(stage, name, kind), context)


def of_the_roles(stage: str) -> Iterator[Request]:
    """Yield what the stack's own roles are allowed."""
    made = resources(stage)
    names = {
        f"{name}.Arn": arns(stage, name, each["Type"])[-1]
        for name, each in made.items()
    }
    for role in properties_by_name({"Resources": made}, "AWS::IAM::Role").values():
        for document in resolve(role.get("Policies", []), names):
            for statement in document["PolicyDocument"]["Statement"]:
                actions, arn = statement["Action"], statement["Resource"]
                for action in [actions] if isinstance(actions, str) else actions:
                    yield Request(action, (arn,))
    yield Request(
        "cloudwatch:DescribeAlarms", arns(stage, "Any", "AWS::CloudWatch::Alarm")
    )
    for action in OF_CODEDEPLOY:
        yield Request(action, arns(stage, "Any", "AWS::Lambda::Alias"))


@pytest.mark.parametrize("stage", ["staging", "production"])
def test_cloudformation_may_make_each_resource_and_nothing_else(stage: str) -> None:
    requests = [*of_the_handlers(stage), *BESIDE_THE_HANDLERS]
    assert (
        evaluate(policy("ExecutionRole", stage), requests) == NOTHING_REFUSED_OR_UNUSED
    )


@pytest.mark.parametrize("stage", ["staging", "production"])
def test_the_boundary_leaves_the_stacks_roles_what_they_have_and_nothing_else(
    stage: str,
) -> None:
    evaluation = evaluate(policy("Boundary", stage), of_the_roles(stage))
    assert evaluation == NOTHING_REFUSED_OR_UNUSED


# What the pipeline's calls need beside the permission of their name, and what is not rehearsed.
TABLE = (
    f"arn:aws:dynamodb:{HERE}:table/animal-store-{{stage}}-AnimalsTable-1A2B3C4D5E6F"
)
RESTORED = (
    f"arn:aws:dynamodb:{HERE}:table/animal-store-{{stage}}-AnimalsTable-{{restored}}"
)
STACK = f"arn:aws:cloudformation:{HERE}:stack/animal-store-{{stage}}/1a2b"
BESIDE_THE_CALLS = [
    # CreateChangeSet, with the role, the tags and the transform that it names
    ("cloudformation:CreateChangeSet", TRANSFORM),
    ("cloudformation:TagResource", STACK),
    ("iam:PassRole", EXECUTION_ROLE),
    # a deployment that is interrupted
    ("cloudformation:CancelUpdateStack", STACK),
    # a restore: amazondynamodb/latest/developerguide/backuprestore_IAM.html
    ("dynamodb:RestoreTableToPointInTime", TABLE),
    ("dynamodb:BatchWriteItem", RESTORED),
    ("dynamodb:DeleteItem", RESTORED),
    ("dynamodb:Query", RESTORED),
    # a restored table has no time to live on AWS; on the emulator it has
    ("dynamodb:UpdateTimeToLive", RESTORED),
]


def of_the_pipeline(stage: str) -> Iterator[Request]:
    """Yield what the commands call, as the rehearsal recorded it."""
    recorded = [line.split() for line in pipeline_calls.listed()]
    context = (("iam:PassedToService", "cloudformation.amazonaws.com"),)
    for action, arn in [*recorded, *BESIDE_THE_CALLS]:
        names = {"stage": stage, "account": ACCOUNT, "restored": "20270131023000"}
        yield Request(action, (arn.format(**names),), context)


@pytest.mark.parametrize("stage", ["staging", "production"])
def test_the_pipeline_may_make_its_calls_and_nothing_else(stage: str) -> None:
    evaluation = evaluate(policy("DeployRole", stage), of_the_pipeline(stage))
    assert evaluation == NOTHING_REFUSED_OR_UNUSED


def test_a_table_in_use_keeps_its_protection_and_its_items_from_deletion() -> None:
    name = "arn:aws:dynamodb:{}:table/animal-store-production-AnimalsTable-{}"
    in_use = (name.format(HERE, "20B3C4D5E6F7"), name.format(HERE, "2027013102300"))
    actions = ("dynamodb:DeleteItem", "dynamodb:UpdateTable")
    refused = evaluate(
        policy("DeployRole", "production"),
        [Request(action, in_use) for action in actions],
    ).refused
    assert refused == [f"{action} on {table}" for action in actions for table in in_use]
