"""Who may become a role of bootstrap.yaml, and the most that its roles can ever be."""

from fnmatch import fnmatchcase
from typing import Any

from tests.support.stack import load, properties_by_name, resolve, role_statements
from tools import ROOT

BOOTSTRAP = load("bootstrap.yaml")
ROLES = properties_by_name(BOOTSTRAP, "AWS::IAM::Role")
BOUNDARY = BOOTSTRAP["Resources"]["Boundary"]["Properties"]["PolicyDocument"]
ROLES_OF_THE_STACK = (
    "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/animal-store-${Stage}-*"
)


def granting(role: str, action: str) -> list[Any]:
    """Return the statements of a role that name an action."""
    statements = ROLES[role]["Policies"][0]["PolicyDocument"]["Statement"]
    return [each for each in statements if action in each["Action"]]


def test_only_jobs_of_the_stages_environment_become_the_role_that_deploys() -> None:
    assert ROLES["DeployRole"]["AssumeRolePolicyDocument"]["Statement"] == [
        {
            "Effect": "Allow",
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Principal": {
                "Federated": {
                    "Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:oidc-provider/"
                    "token.actions.githubusercontent.com"
                }
            },
            "Condition": {
                "StringEquals": {
                    "token.actions.githubusercontent.com:aud": "sts.amazonaws.com",
                    "token.actions.githubusercontent.com:sub": [
                        {"Fn::Sub": "repo:${Owner}/${Repository}:environment:${Stage}"},
                        {
                            "Fn::Sub": "repo:${Owner}@${OwnerId}/${Repository}@${RepositoryId}"
                            ":environment:${Stage}"
                        },
                    ],
                }
            },
        }
    ]


def test_only_aws_services_become_the_other_roles() -> None:
    for role, service in {
        "ApiGatewayLoggingRole": "apigateway.amazonaws.com",
        "ExecutionRole": "cloudformation.amazonaws.com",
    }.items():
        assert ROLES[role]["AssumeRolePolicyDocument"]["Statement"] == [
            {
                "Effect": "Allow",
                "Action": "sts:AssumeRole",
                "Principal": {"Service": service},
            }
        ]
    assert ROLES.keys() == {"ApiGatewayLoggingRole", "DeployRole", "ExecutionRole"}


def test_the_roles_have_no_policy_but_their_own_and_a_path_that_they_cannot_change() -> (
    None
):
    for role in ("DeployRole", "ExecutionRole"):
        assert "ManagedPolicyArns" not in ROLES[role]
        assert ROLES[role]["Path"] == "/animal-store-bootstrap/"


def test_roles_are_passed_only_to_the_services_that_need_them() -> None:
    assert granting("DeployRole", "iam:PassRole") == [
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
    names = {
        "AWS::Partition": "aws",
        "AWS::Region": "r",
        "AWS::AccountId": "1",
        "Stage": "s",
    }
    statements = resolve(BOUNDARY["Statement"], names)
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
        (["xray:PutTelemetryRecords", "xray:PutTraceSegments"], "*"),
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


def test_no_right_reaches_the_other_stage() -> None:
    for line in (ROOT / "bootstrap.yaml").read_text().splitlines():
        if "arn:" in line and "animal-store-" in line:
            assert "animal-store-${Stage}" in line
