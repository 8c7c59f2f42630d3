"""`status` and `check-stage` report each fault of a stage in one line."""

import time
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import pytest

from ops.stage import DeploymentError, Stage
from ops.status import check_stage, status
from tests.support.aws import Account

SOON = {"N": str(int(time.time()) + 86_400)}
# Only a check's hash begins with 00; anybody may be called so.
KEY = {"hash": {"S": "b" * 64}, "label": {"S": "check"}, "created": {"N": "1"}}
GET = [{"Name": "Method", "Value": "GET"}, {"Name": "Path", "Value": "/v1/pets"}]
METRIC = {"Namespace": "AnimalStore", "MetricName": "Failed", "Dimensions": GET}
BACKUPS = {"PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "ENABLED"}}
NO_BACKUPS = {
    "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "DISABLED"}
}
VERSION = {
    "LogicalResourceId": "Version",
    "PhysicalResourceId": "arn:aws:lambda:eu-central-1:123456789012:function:get:7",
    "ResourceType": "AWS::Lambda::Version",
}
TABLE = {"LogicalResourceId": "AnimalsTable", "StackResourceDriftStatus": "IN_SYNC"}
GONE = TABLE | {"StackResourceDriftStatus": "DELETED"}
CHANGED = TABLE | {
    "StackResourceDriftStatus": "MODIFIED",
    "PropertyDifferences": [
        {
            "PropertyPath": "/RetentionInDays",
            "ExpectedValue": "90",
            "ActualValue": "null",
            "DifferenceType": "NOT_EQUAL",
        }
    ],
}
MONTH_AGO = datetime(2026, 10, 27, tzinfo=UTC)
SHARES = [
    {"Average": 1.0, "Timestamp": MONTH_AGO + timedelta(days=30)},
    {"Average": 0.001, "Timestamp": MONTH_AGO},
]


@pytest.fixture
def sound(live: Account) -> Account:
    """Let nothing be wrong in a stage."""
    live.client("dynamodb").update_time_to_live(
        TableName="animals",
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"},
    )
    live.answers |= {
        "DescribeContinuousBackups": {"ContinuousBackupsDescription": BACKUPS},
        "DescribeStackDriftDetectionStatus": {"DetectionStatus": "DETECTION_COMPLETE"},
        "DescribeStackResourceDrifts": {"StackResourceDrifts": [TABLE]},
        "DetectStackDrift": {"StackDriftDetectionId": "1" * 36},
        "GetAlias": {"FunctionVersion": "7"},
        "GetMetricStatistics": {"Datapoints": SHARES},
        "GetTopicAttributes": {"Attributes": {"SubscriptionsConfirmed": "1"}},
        "ListMetrics": {"Metrics": [METRIC]},
        "ListStackResources": {"StackResourceSummaries": [VERSION]},
    }
    return live


def test_sound_stage_passes_the_suite_of_the_commit_that_it_runs(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    check_stage(sound.stage)
    lines = capsys.readouterr().out.splitlines()
    assert "GET /v1/pets: 0.100% of its requests failed in 30 days" in lines
    assert "CloudFormation compared 1 resources" in lines
    assert sound.calls == [["suite", "zebra", "-rfE", "-m", "smoke_read_only"]]


@pytest.mark.parametrize(
    ("operation", "answer", "line"),
    [
        (
            "GetObject",
            {"Body": BytesIO(b"ape")},
            "! it has not passed its check; the last that did: ape",
        ),
        (
            "GetTopicAttributes",
            {"Attributes": {"SubscriptionsConfirmed": "0"}},
            "! nobody has confirmed the address of the alarms",
        ),
        (
            "DescribeContinuousBackups",
            {"ContinuousBackupsDescription": NO_BACKUPS},
            "! keys: point-in-time recovery is DISABLED",
        ),
        (
            "DescribeTimeToLive",
            {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}},
            "! animals: time to live is DISABLED",
        ),
        (
            "Query",
            {"Items": [{"id": {"N": "20.5"}, "value": {"N": "20"}}]},
            "! the counter, 20.0, is below the highest id, 20.5",
        ),
        (
            "Query",
            {"Items": [{"id": {"N": "1"}, "value": {"S": "20"}}]},
            (
                "! counter cannot be checked: counter has no number value: "
                "{'id': {'N': '1'}, 'value': {'S': '20'}}"
            ),
        ),
        (
            "GetMetricStatistics",
            {"Datapoints": [{"Average": 0.002, "Timestamp": MONTH_AGO}]},
            "! GET /v1/pets: 0.200% of its requests failed in 30 days",
        ),
        (
            "GetAlias",
            {"FunctionVersion": "6"},
            "! version 7 of get was deployed, live points to 6",
        ),
    ],
)
def test_fault_is_reported_in_one_line(
    sound: Account,
    operation: str,
    answer: Any,
    line: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sound.answers[operation] = answer
    assert status(sound.stage) >= 1
    assert line in capsys.readouterr().out.splitlines()


def test_highest_id_is_read_before_the_counter(sound: Account) -> None:
    partitions: list[str] = []

    def note(params: dict[str, Any], **_: object) -> None:
        partitions.append(params["ExpressionAttributeValues"][":pk"]["S"])

    events = sound.client("dynamodb").meta.events
    events.register("provide-client-params.dynamodb.Query", note, unique_id="note")
    status(sound.stage)
    events.unregister("provide-client-params.dynamodb.Query", unique_id="note")
    # Else a creation between both reads would look like a counter that is behind.
    assert partitions == ["pet", "counter"]


def test_client_key_that_ends_soon_is_reported(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    sound.answers["Scan"] = {"Items": [KEY | {"expires": SOON}]}
    assert status(sound.stage) == 1
    assert "! key bbbbbbbbbbbb (check) ends on " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("drift", "line"),
    [
        (GONE, "! AnimalsTable is gone"),
        (CHANGED, "! AnimalsTable is MODIFIED: /RetentionInDays is null, not 90"),
    ],
)
def test_drift_is_reported_and_fails_the_check(
    sound: Account, drift: Any, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sound.answers["DescribeStackResourceDrifts"] = {"StackResourceDrifts": [drift]}
    assert status(sound.stage) == 0  # which does not wait for drift detection
    with pytest.raises(DeploymentError, match="1 things are not as they should be"):
        check_stage(sound.stage)
    assert line in capsys.readouterr().out.splitlines()


def test_failed_drift_detection_fails_the_check(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    sound.answers["DescribeStackDriftDetectionStatus"] = {
        "DetectionStatus": "DETECTION_FAILED",
        "DetectionStatusReason": "no rights",
    }
    with pytest.raises(DeploymentError, match="1 things"):
        check_stage(sound.stage)
    assert "! drift detection: DETECTION_FAILED no rights" in capsys.readouterr().out


def test_missing_table_is_named_and_the_rest_is_still_checked(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    sound.client("dynamodb").delete_table(TableName="animals")
    sound.answers["DescribeContinuousBackups"] = None
    status(sound.stage)
    printed = capsys.readouterr().out
    assert "! animals cannot be checked: An error occurred" in printed
    assert "GET /v1/pets: 0.100%" in printed


def test_stage_without_a_stack_is_one_line(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(account.stage) == 1
    assert capsys.readouterr().out == "animal-store-production does not exist\n"


def test_stage_of_a_plain_sam_deploy_has_no_suite_to_be_checked_with(
    sound: Account,
) -> None:
    sound.client("cloudformation").update_stack(
        StackName=sound.stage.stack,
        TemplateBody="Resources: {}\nOutputs: {ApiKeysTableName: {Value: keys}}",
    )
    with pytest.raises(DeploymentError, match="production runs no artifact"):
        check_stage(sound.stage)


@pytest.mark.parametrize(
    ("state", "advice"),
    [
        ("CREATE_COMPLETE", ""),
        ("REVIEW_IN_PROGRESS", ""),
        ("CREATE_IN_PROGRESS", "; next: wait until it has ended"),
        (
            "UPDATE_IN_PROGRESS",
            (
                "; next: wait until it has ended, or: "
                "aws cloudformation cancel-update-stack --stack-name animal-store-staging"
            ),
        ),
        (
            "ROLLBACK_COMPLETE",
            (
                "; next: an administrator: "
                "aws cloudformation delete-stack --stack-name animal-store-staging"
            ),
        ),
        (
            "UPDATE_ROLLBACK_FAILED",
            (
                "; next: "
                "aws cloudformation continue-update-rollback --stack-name animal-store-staging"
            ),
        ),
    ],
)
def test_state_in_which_nothing_can_be_deployed_has_advice(
    account: Account, state: str, advice: str
) -> None:
    account.answers["DescribeStacks"] = {"Stacks": [{"StackStatus": state}]}
    stage = Stage("staging", account.client)
    assert stage.state() == f"animal-store-staging is {state}{advice}"
