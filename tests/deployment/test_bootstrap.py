"""Who may become a role of bootstrap.yaml, and the most that its roles can ever be."""

import fnmatch
import json
import subprocess
from typing import Any

import pytest

from tests.support.stack import load, properties_by_name, role_statements
from tools.deployment import bootstrap
from tools.deployment.stage import DeploymentError, Stage
from tools.deployment.template import resolve

BOOTSTRAP = load("bootstrap.yaml")
ROLES = properties_by_name(BOOTSTRAP, "AWS::IAM::Role")
BOUNDARY = BOOTSTRAP["Resources"]["Boundary"]["Properties"]["PolicyDocument"]
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


@pytest.mark.parametrize(
    ("role", "principal", "condition"),
    [
        ("ApiGatewayLoggingRole", {"Service": "apigateway.amazonaws.com"}, {}),
        ("ExecutionRole", {"Service": "cloudformation.amazonaws.com"}, {}),
        (
            "OperatorRole",
            {"AWS": "arn:aws:iam::1:root"},
            {"Condition": {"Bool": {"aws:MultiFactorAuthPresent": "true"}}},
        ),
    ],
)
def test_only_a_service_or_people_with_mfa_become_the_other_roles(
    role: str, principal: dict[str, str], condition: dict[str, Any]
) -> None:
    assert trust(role) == [
        {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal}
        | condition
    ]


def test_no_role_can_change_these_roles_by_their_path() -> None:
    """What each may do is in test_permissions.py, but for the role of API Gateway."""
    assert {role["Path"] for role in ROLES.values()} == {"/animal-store-bootstrap/"}
    (policy,) = ROLES["ApiGatewayLoggingRole"]["ManagedPolicyArns"]
    assert policy["Fn::Sub"].endswith("/AmazonAPIGatewayPushToCloudWatchLogs")


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


PATTERNS = {"protected_branches": False}
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
        (None, [MAIN]),
        ({"protected_branches": True}, [MAIN]),
        (PATTERNS, []),
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
    resources = BOOTSTRAP["Resources"]
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
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    (mail,) = resources["Budget"]["Properties"]["NotificationsWithSubscribers"]
    assert mail["Notification"]["ComparisonOperator"] == "GREATER_THAN"
    assert mail["Notification"]["Threshold"] == 80
