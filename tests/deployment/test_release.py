"""What a deployment asks of CloudFormation and Lambda, and what it says when they refuse."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError

from tests.support.aws import CONFIG, TEMPLATE, Aws, aws_error, pack
from tools.deployment import commands, release
from tools.deployment.stage import DeploymentError

OLDER = Path("older.zip")


def test_two_deployments_of_one_artifact_publish_different_versions(aws: Aws) -> None:
    commands.deploy(aws.stage, OLDER)
    first = aws.stack["Outputs"]["Deployed"]
    commands.deploy(aws.stage, OLDER)
    assert aws.stack["Outputs"]["Deployed"] != first


def test_a_value_in_samconfig_replaces_the_one_in_use(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = CONFIG.replace('"MemorySize', '"AlarmEmail=new@b.c", "MemorySize')
    monkeypatch.setattr("tests.support.aws.CONFIG", new)
    aws.stack = {"Parameters": {"AlarmEmail": "old@b.c"}}

    assert aws.stage.parameters(pack("older"))["AlarmEmail"] == "new@b.c"
    monkeypatch.setenv("ALARM_EMAIL", "newest@b.c")
    assert aws.stage.parameters(pack("older"))["AlarmEmail"] == "newest@b.c"


def test_a_stack_of_more_than_a_page_is_read_whole(aws: Aws) -> None:
    def page(asked: Any) -> Any:
        name = asked.get("NextToken", "A")
        each = {"LogicalResourceId": name, "PhysicalResourceId": name.lower()}
        found = {"StackResourceSummaries": [each | {"ResourceType": "Any"}]}
        return found if name == "B" else found | {"NextToken": "B"}

    aws.stack = {"StackStatus": "UPDATE_COMPLETE"}
    aws.answers["cloudformation:ListStackResources"] = page

    assert aws.stage.resources() == {"A": "a", "B": "b"}


def test_what_passed_is_noted_although_somebody_else_has_deployed(aws: Aws) -> None:
    def check(*_: object) -> None:
        aws.stack["Outputs"]["Artifact"] = "another"

    release.deploy_and_check(aws.stage, pack("older"), check, canary=False)

    (passed,) = (key for key in aws.objects if key.startswith("passed/"))
    assert passed.startswith("passed/older-")


EVENTS = """
OperationEvents:
  - LogicalResourceId: Api
    ResourceStatusReason: b
    Timestamp: RECENT
  - Timestamp: RECENT
  - LogicalResourceId: Topic
    ValidationStatusReason: it exists
    ValidationPath: /Resources/Topic
    Timestamp: RECENT
  - ResourceStatusReason: of an earlier deployment
    Timestamp: 2026-01-01T00:00:00Z
"""


def test_a_change_set_that_fails_says_why(aws: Aws) -> None:
    aws.results["sam deploy"] = 1, "Failed to create changeset"
    recent = datetime.now(UTC) - timedelta(minutes=4)  # by another clock
    events = EVENTS.replace("RECENT", recent.isoformat())
    aws.answers["cloudformation:DescribeEvents"] = yaml.safe_load(events)
    message = r"(?s)^Failed to create changeset\n.*\nTopic: it exists, /.*\nApi: b$"
    with pytest.raises(DeploymentError, match=message) as failed:
        commands.deploy(aws.stage, OLDER)
    assert "earlier" not in str(failed.value)

    aws.answers["cloudformation:DescribeEvents"] = aws_error("AccessDenied", "no right")
    with pytest.raises(DeploymentError, match=r"(?s)changeset.*reasons.*no right"):
        commands.deploy(aws.stage, OLDER)


@pytest.mark.parametrize(("free", "used"), [(400, 0), (250, 150)])
def test_a_stage_reserves_only_what_lambda_leaves(
    aws: Aws, free: int, used: int
) -> None:
    """Of 300 executions for its one function, and 100 that stay unreserved."""
    parameter = "ReservedConcurrency: {Default: "
    artifact = pack("newer", TEMPLATE.replace(f"{parameter}0", f"{parameter}300"))
    aws.stack = {"Parameters": {"ReservedConcurrency": str(used)}}
    limit = {"UnreservedConcurrentExecutions": free - 1}
    aws.answers["lambda:GetAccountSettings"] = {"AccountLimit": limit}
    with pytest.raises(DeploymentError, match="functions are to reserve"):
        release.install(aws.stage, artifact, canary=True)
    assert not aws.changed()

    limit["UnreservedConcurrentExecutions"] = free
    release.install(aws.stage, artifact, canary=True)
    limit["UnreservedConcurrentExecutions"] = 0
    release.install(aws.stage, artifact, canary=True)


def test_only_a_missing_stack_means_that_nothing_runs(aws: Aws) -> None:
    assert (aws.stage.status(), aws.stage.outputs()) == ("", {})

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
