"""What a deployment asks of CloudFormation and Lambda, and what it says when they refuse."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.aws import ARN, TEMPLATE, Aws, aws_error, pack
from tools.deployment import bootstrap, commands, release
from tools.deployment.stage import DeploymentError

OLDER = Path("older.zip")


def test_two_deployments_of_one_artifact_publish_different_versions(aws: Aws) -> None:
    moments = []
    for _ in range(2):
        commands.deploy(aws.stage, OLDER)
        live = aws.answers["lambda:GetFunction"]["Configuration"]
        moments.append(live["Environment"]["Variables"]["DEPLOYMENT"])
        assert aws.stack["Outputs"]["Deployed"] == moments[-1]
    assert moments[0] != moments[1]


def test_a_change_set_that_fails_says_why(aws: Aws) -> None:
    now = datetime.now(UTC)
    aws.results["sam deploy"] = 1, "Failed to create changeset"
    events: list[Any] = [
        {"LogicalResourceId": "Api", "ResourceStatusReason": "b"},
        {"EventType": "STACK_EVENT"},
        {
            "LogicalResourceId": "Topic",
            "ValidationStatusReason": "it exists",
            "ValidationPath": "/Resources/Topic",
        },
        {"ResourceStatusReason": "old", "Timestamp": now - timedelta(days=1)},
    ]
    aws.answers["cloudformation:DescribeEvents"] = {
        "OperationEvents": [{"Timestamp": now} | event for event in events]
    }
    with pytest.raises(DeploymentError) as failed:
        commands.deploy(aws.stage, OLDER)

    first, *_, second_last, last = str(failed.value).splitlines()
    assert first == "Failed to create changeset"
    assert [second_last, last] == ["Topic: it exists, /Resources/Topic", "Api: b"]
    asked = "cloudformation:DescribeEvents animal-store-production True\n"
    assert aws.session().endswith(asked)

    aws.answers["cloudformation:DescribeEvents"] = aws_error("AccessDenied", "no right")
    with pytest.raises(DeploymentError, match=r"(?s)changeset.*reasons.*no right"):
        commands.deploy(aws.stage, OLDER)


@pytest.mark.parametrize(
    ("free", "used", "enough"),
    [
        (400, 0, True),
        (399, 0, False),
        (250, 150, True),
        (249, 150, False),
        (0, 300, True),
        (10, 0, False),
    ],
)
def test_a_stage_reserves_only_what_lambda_leaves(
    aws: Aws, free: int, used: int, enough: bool
) -> None:
    """Of 300 executions for its one function, and 100 that stay unreserved."""
    parameter = "ReservedConcurrency: {Default: "
    artifact = pack("newer", TEMPLATE.replace(f"{parameter}0", f"{parameter}300"))
    aws.stack = {"Parameters": {"ReservedConcurrency": str(used)}}
    limit = {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": free}
    aws.answers["lambda:GetAccountSettings"] = {"AccountLimit": limit}

    message = ""
    try:
        release.install(aws.stage, artifact, canary=True)
    except DeploymentError as refused:
        message = str(refused)
    assert message.startswith("" if enough else "1 functions are to reserve")
    assert bool(aws.changes()) is enough


def test_only_a_missing_stack_means_that_nothing_runs(aws: Aws) -> None:
    assert (aws.stage.status(), aws.stage.outputs()) == ("", {})

    aws.account = {}
    with pytest.raises(DeploymentError, match="make bootstrap STAGE=production"):
        aws.stage.account()

    throttled = aws_error("Throttling", "Rate exceeded")
    aws.answers["cloudformation:DescribeStacks"] = throttled
    with pytest.raises(ClientError, match="Rate exceeded"):
        aws.stage.status()


@pytest.mark.parametrize("status", ["", "UPDATE_COMPLETE", "REVIEW_IN_PROGRESS"])
def test_a_stack_at_rest_is_not_waited_for(aws: Aws, status: str) -> None:
    aws.stack = {"StackStatus": status} if status else {}
    aws.stage.wait()
    assert aws.lines == []


def test_a_rollback_does_not_mind_an_update_that_has_just_ended(aws: Aws) -> None:
    def end(_: object) -> Any:
        aws.stack = {"StackStatus": "UPDATE_COMPLETE"}
        return aws_error("ValidationError", "cannot be called from this status")

    aws.stack = {"StackStatus": "UPDATE_IN_PROGRESS"}
    aws.answers["cloudformation:CancelUpdateStack"] = end
    aws.stage.cancel()

    aws.stack = {"StackStatus": "UPDATE_IN_PROGRESS"}
    aws.answers["cloudformation:CancelUpdateStack"] = aws_error("AccessDenied", "no")
    with pytest.raises(ClientError, match="AccessDenied"):
        aws.stage.cancel()


BOOTSTRAP = """\
apigateway:GetAccount
cloudformation:ListStackResources animal-store-production-bootstrap
$ SAM_CLI_TELEMETRY=0 sam deploy --template-file bootstrap.yaml --stack-name
    animal-store-production-bootstrap --capabilities CAPABILITY_IAM
    --no-fail-on-empty-changeset --no-progressbar --parameter-overrides Stage=production
    CreateApiGatewayLoggingRole=true
"""


@pytest.mark.parametrize(
    ("used", "own", "is_kept"),
    [
        ({}, "", False),
        ({"cloudwatchRoleArn": f"{ARN}:role/theirs"}, "", True),
        ({"cloudwatchRoleArn": f"{ARN}:role/animal-store/ours"}, "ours", False),
    ],
)
def test_the_role_with_which_other_apis_write_logs_is_kept(
    aws: Aws, used: dict[str, str], own: str, is_kept: bool
) -> None:
    aws.answers["apigateway:GetAccount"] = used
    aws.resources.append(["ApiGatewayLoggingRole", own, "AWS::IAM::Role"])
    message = ""
    try:
        bootstrap.create(aws.stage, ["CreateApiGatewayLoggingRole=true"])
    except DeploymentError as refused:
        message = str(refused)
    assert ("role/theirs, for every API" in message) is is_kept
    assert (aws.session() == BOOTSTRAP) is not is_kept
