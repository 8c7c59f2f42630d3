"""What bootstrap.yaml gives to deployments: enough for template.yaml, and no way to more."""

import re
from fnmatch import fnmatchcase
from functools import cache

from cfnlint.decode import cfn_yaml  # type: ignore[import-untyped]
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]

from tests.support.stack import Template, as_list, of_type, parameters
from tools import ROOT
from tools.packaging.translate import translate

BOOTSTRAP = cfn_yaml.load(str(ROOT / "bootstrap.yaml"))
ROLES = of_type(BOOTSTRAP, "AWS::IAM::Role")
DEPLOY, EXECUTION = (
    ROLES[f"{name}Role"]["Policies"][0]["PolicyDocument"] for name in ("Deploy", "Execution")
)
BOUNDARY = BOOTSTRAP["Resources"]["Boundary"]["Properties"]["PolicyDocument"]

# Needed for what our template does not have: imports and replicas of tables, protection of data in logs.
UNUSED = re.compile(
    r"dynamodb:(\w*Item|Query|Scan|DescribeImport|\w+TableReplica)|logs:\w*LogDelivery|iam:DeleteRolePermissionsBoundary"
)


@cache
def stack() -> Template:
    return translate(parameters("production"))


def allowing(policy: Template, action: str) -> list[Template]:
    """The statements that have an action."""
    return [
        each
        for each in policy["Statement"]
        if any(fnmatchcase(action, one) for one in as_list(each["Action"]))
    ]


def test_cloudformation_may_do_what_each_resource_of_the_stack_needs() -> None:
    kinds = {resource["Type"] for resource in stack()["Resources"].values()}
    services = {kind.split("::")[1].lower() for kind in kinds}
    for kind in kinds:
        handlers = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema["handlers"]
        needed = {
            action
            for name, handler in handlers.items()
            if name != "list"
            for action in handler["permissions"]
        }
        # Of other services (KMS, EC2, ...) only properties that we do not set need something.
        ours = {
            action
            for action in needed
            if action.partition(":")[0] in services and not UNUSED.fullmatch(action)
        }
        assert not {action for action in ours if not allowing(EXECUTION, action)}, kind
    assert "*" in [
        statement["Resource"] for statement in allowing(EXECUTION, "codedeploy:StopDeployment")
    ]
    assert allowing(DEPLOY, "cloudformation:TagResource") == allowing(
        DEPLOY, "cloudformation:CreateChangeSet"
    )


def test_no_role_can_be_made_or_changed_into_one_without_the_boundary() -> None:
    for action in (
        "AttachRolePolicy",
        "CreateRole",
        "DetachRolePolicy",
        "PutRolePermissionsBoundary",
        "PutRolePolicy",
    ):
        (granting,) = allowing(EXECUTION, f"iam:{action}")
        assert granting["Condition"] == {
            "StringEquals": {"iam:PermissionsBoundary": {"Ref": "Boundary"}}
        }
    for action in (
        "DeleteRolePermissionsBoundary",
        "CreatePolicy",
        "CreateUser",
        "CreateAccessKey",
    ):
        assert not allowing(EXECUTION, f"iam:{action}")
    (passing,) = allowing(EXECUTION, "iam:PassRole")
    services = ["lambda.amazonaws.com", "codedeploy.amazonaws.com"]
    assert passing["Condition"] == {"StringEquals": {"iam:PassedToService": services}}
    # Nor can these roles themselves: role/animal-store-<stage>-* is not on their path.
    assert {role["Path"] for role in ROLES.values()} == {"/animal-store-bootstrap/"}


def test_the_boundary_leaves_the_stacks_roles_what_they_have() -> None:
    policies = [
        policy
        for role in of_type(stack(), "AWS::IAM::Role").values()
        for policy in role.get("Policies", [])
    ]
    for statement in [
        each for policy in policies for each in policy["PolicyDocument"]["Statement"]
    ]:
        assert all(allowing(BOUNDARY, action) for action in as_list(statement["Action"])), statement
    assert not allowing(BOUNDARY, "iam:PassRole")
