"""Who may become a role of bootstrap.yaml, and the most that its roles can ever be."""

import json
import subprocess
from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.support.stack import load, properties_by_name, role_statements
from tools.deployment import bootstrap
from tools.deployment.stage import DeploymentError, Stage
from tools.deployment.template import resolve

BOOTSTRAP = load("bootstrap.yaml")
ROLES = properties_by_name(BOOTSTRAP, "AWS::IAM::Role")
BOUNDARY = BOOTSTRAP["Resources"]["Boundary"]["Properties"]["PolicyDocument"]
ROLES_OF_THE_STACK = (
    "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/animal-store-${Stage}-*"
)


NAMES = {
    "AWS::AccountId": "1",
    "AWS::Partition": "aws",
    "AWS::Region": "r",
    "Owner": "octo",
    "OwnerId": "5",
    "Repository": "animals",
    "RepositoryId": "7",
    "Stage": "s",
}


def granting(resource: str, action: str) -> list[Any]:
    """Return the statements of a role or a policy that name an action."""
    properties = BOOTSTRAP["Resources"][resource]["Properties"]
    document = properties.get("Policies", [properties])[0]["PolicyDocument"]
    return [each for each in document["Statement"] if action in each["Action"]]


def trust(role: str) -> list[Any]:
    """Return who may become a role."""
    document = ROLES[role]["AssumeRolePolicyDocument"]
    statements: list[Any] = resolve(document["Statement"], NAMES)
    return statements


@pytest.mark.parametrize(
    ("role", "environment"), [("DeployRole", "s"), ("CheckRole", "s-check")]
)
def test_only_jobs_of_an_environment_on_main_of_one_repository_become_a_role(
    role: str, environment: str
) -> None:
    github = "token.actions.githubusercontent.com"
    assert trust(role) == [
        {
            "Effect": "Allow",
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Principal": {"Federated": f"arn:aws:iam::1:oidc-provider/{github}"},
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


def test_people_of_the_account_become_operators_with_mfa() -> None:
    assert trust("OperatorRole") == [
        {
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"AWS": "arn:aws:iam::1:root"},
            "Condition": {"Bool": {"aws:MultiFactorAuthPresent": "true"}},
        }
    ]


def test_only_aws_services_become_the_other_roles() -> None:
    for role, service in {
        "ApiGatewayLoggingRole": "apigateway.amazonaws.com",
        "ExecutionRole": "cloudformation.amazonaws.com",
    }.items():
        assert trust(role) == [
            {
                "Effect": "Allow",
                "Action": "sts:AssumeRole",
                "Principal": {"Service": service},
            }
        ]


def test_roles_have_these_policies_and_a_path_that_they_cannot_change() -> None:
    found = {}
    for name, role in ROLES.items():
        attached = [each.get("Ref") for each in role.get("ManagedPolicyArns", [])]
        own = [each["PolicyName"] for each in role.get("Policies", [])]
        found[name] = attached + own
        assert role["Path"] == "/animal-store-bootstrap/"
    assert found == {
        "ApiGatewayLoggingRole": [None],  # AWS's own
        "CheckRole": ["CheckPolicy"],
        "DeployRole": ["CheckPolicy", "DeployPolicy"],
        "ExecutionRole": ["make-the-stack"],
        "OperatorRole": ["CheckPolicy", "DeployPolicy", "RepairPolicy"],
    }


def test_roles_are_passed_only_to_the_services_that_need_them() -> None:
    assert granting("DeployPolicy", "iam:PassRole") == [
        {
            "Sid": "LetCloudFormationAct",
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": {"Fn::GetAtt": ["ExecutionRole", "Arn"]},
            "Condition": {
                "StringEquals": {"iam:PassedToService": "cloudformation.amazonaws.com"}
            },
        }
    ]
    services = ["lambda.amazonaws.com", "codedeploy.amazonaws.com"]
    assert granting("ExecutionRole", "iam:PassRole") == [
        {
            "Sid": "GiveRolesToFunctionsAndCodeDeploy",
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": {"Fn::Sub": ROLES_OF_THE_STACK},
            "Condition": {"StringEquals": {"iam:PassedToService": services}},
        }
    ]


def test_a_role_is_made_and_given_policies_only_with_the_boundary_and_under_its_prefix() -> (
    None
):
    assert granting("ExecutionRole", "iam:CreateRole") == [
        {
            "Sid": "RolesWithTheBoundary",
            "Effect": "Allow",
            "Action": [
                "iam:AttachRolePolicy",
                "iam:CreateRole",
                "iam:DeleteRolePolicy",
                "iam:DetachRolePolicy",
                "iam:PutRolePermissionsBoundary",
                "iam:PutRolePolicy",
            ],
            "Resource": {"Fn::Sub": ROLES_OF_THE_STACK},
            "Condition": {
                "StringEquals": {"iam:PermissionsBoundary": {"Ref": "Boundary"}}
            },
        }
    ]


def test_the_boundary_is_this_and_no_more() -> None:
    statements = resolve(BOUNDARY["Statement"], NAMES)
    shift = [
        "lambda:GetAlias",
        "lambda:GetProvisionedConcurrencyConfig",
        "lambda:UpdateAlias",
    ]
    assert [(each["Action"], each["Resource"]) for each in statements] == [
        (
            ["dynamodb:*Item", "dynamodb:Query"],
            "arn:aws:dynamodb:r:1:table/animal-store-s-*",
        ),
        (
            ["logs:CreateLogStream", "logs:PutLogEvents"],
            "arn:aws:logs:r:1:log-group:animal-store-s-*",
        ),
        (shift, "arn:aws:lambda:r:1:function:animal-store-s-*"),
        ("cloudwatch:DescribeAlarms", "*"),
    ]


def actions_of(statement: dict[str, Any]) -> list[str]:
    """Return the actions of a statement, which may be one."""
    actions = statement["Action"]
    return [actions] if isinstance(actions, str) else actions


def test_the_boundary_allows_every_action_of_the_stacks_roles() -> None:
    allowed, missing = [], set()
    for statement in BOUNDARY["Statement"]:
        allowed += actions_of(statement)
    for _, statement in role_statements(load("template.yaml")):
        for action in actions_of(statement):
            if not any(fnmatchcase(action, pattern) for pattern in allowed):
                missing.add(action)
    assert missing == set(), "Add them to Boundary in bootstrap.yaml."


def identity(rules: Any, patterns: list[tuple[str, str]]) -> list[str]:
    """Ask a GitHub whose environment has these rules."""
    environment = "repos/octo/animals/environments/production"
    policies = [{"type": kind, "name": name} for kind, name in patterns]
    answers = {
        environment: {"deployment_branch_policy": rules},
        f"{environment}/deployment-branch-policies": {"branch_policies": policies},
        "repos/octo/animals": {"id": 7, "owner": {"id": 5}},
    }

    def execute(
        command: tuple[str, str, str], **_: Any
    ) -> subprocess.CompletedProcess[str]:
        assert command[:2] == ("gh", "api")
        return subprocess.CompletedProcess(command, 0, json.dumps(answers[command[2]]))

    return bootstrap.identity(Stage("production", execute=execute), "octo/animals")


PATTERNS = {"protected_branches": False, "custom_branch_policies": True}
PROTECTED = {"protected_branches": True, "custom_branch_policies": False}
MAIN = ("branch", "main")


def test_a_repository_is_known_by_numbers() -> None:
    assert identity(PATTERNS, [MAIN]) == [
        "Owner=octo",
        "Repository=animals",
        "OwnerId=5",
        "RepositoryId=7",
    ]


@pytest.mark.parametrize(
    ("rules", "patterns"),
    [
        (None, []),
        (None, [MAIN]),
        (PROTECTED, [MAIN]),
        (PATTERNS, []),
        (PATTERNS, [("branch", "*")]),
        (PATTERNS, [("tag", "main")]),
        (PATTERNS, [MAIN, ("branch", "release/*")]),
    ],
)
def test_an_environment_that_more_than_main_may_use_is_refused(
    rules: Any, patterns: list[tuple[str, str]]
) -> None:
    with pytest.raises(DeploymentError, match="more than main"):
        identity(rules, patterns)


def test_artifacts_are_kept_and_cost_is_mailed() -> None:
    def properties(name: str) -> Any:
        return BOOTSTRAP["Resources"][name]["Properties"]

    bucket = properties("ArtifactBucket")
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert bucket["LifecycleConfiguration"]["Rules"] == [
        {
            "Id": "overwritten",
            "Status": "Enabled",
            "NoncurrentVersionExpiration": {"NoncurrentDays": 365},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
        }
    ]
    (statement,) = properties("ArtifactBucketPolicy")["PolicyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    (mail,) = properties("Budget")["NotificationsWithSubscribers"]
    assert mail["Notification"] == {
        "NotificationType": "ACTUAL",
        "ComparisonOperator": "GREATER_THAN",
        "Threshold": 80,
    }
