"""What `make status` finds, one thing at a time, and that it goes on past what is gone."""

import time
from io import BytesIO
from typing import Any

import pytest

from ops.stage import DeploymentError
from ops.status import check_stage, status
from tests.support.aws import Account

SOON = {"N": str(int(time.time()) + 86_400)}
# Only a check's hash begins with 00; anybody may be called so.
KEY = {"hash": {"S": "b" * 64}, "label": {"S": "check"}, "created": {"N": "1"}}
GET = [{"Name": "Method", "Value": "GET"}]
METRIC = {"Namespace": "AnimalStore", "MetricName": "Failed", "Dimensions": GET}
BACKUPS = {"PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "ENABLED"}}
VERSION = {
    "LogicalResourceId": "Version",
    "PhysicalResourceId": "arn:aws:lambda:eu-central-1:123456789012:function:get:7",
    "ResourceType": "AWS::Lambda::Version",
    "DriftInformation": {"StackResourceDriftStatus": "UNKNOWN"},
}
MODIFIED = VERSION | {"DriftInformation": {"StackResourceDriftStatus": "MODIFIED"}}


@pytest.fixture
def sound(live: Account) -> Account:
    """Let nothing be wrong in a stage."""
    live.client("dynamodb").update_time_to_live(
        TableName="animals",
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"},
    )
    live.answers |= {
        "DescribeStackDriftDetectionStatus": {"DetectionStatus": "DETECTION_COMPLETE"},
        "DetectStackDrift": {"StackDriftDetectionId": "1" * 36},
        "DescribeContinuousBackups": {"ContinuousBackupsDescription": BACKUPS},
        "GetAlias": {"FunctionVersion": "7"},
        "ListMetrics": {"Metrics": [METRIC]},
        "GetMetricStatistics": {"Datapoints": [{"Average": 0.001}]},
        "GetTopicAttributes": {"Attributes": {"SubscriptionsConfirmed": "1"}},
        "ListStackResources": {"StackResourceSummaries": [VERSION]},
    }
    return live


def test_a_sound_stage_passes_and_nothing_unknown_is_in_sync(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    check_stage(sound.stage)
    printed = capsys.readouterr().out
    assert f"0.100% failed in 30 days: {GET}" in printed
    assert "drift: Counter({'UNKNOWN': 1})" in printed
    assert "tests/contract" in sound.started[-1]


@pytest.mark.parametrize(
    ("operation", "answer", "line"),
    [
        ("GetObject", {"Body": BytesIO(b"ape")}, "! it has not passed its check"),
        (
            "GetTopicAttributes",
            {"Attributes": {"SubscriptionsConfirmed": "0"}},
            "! nobody has confirmed",
        ),
        ("DescribeContinuousBackups", {}, "'animals'} has [None, 'ENABLED']"),
        (
            "Query",
            {"Items": [{"id": {"N": "20.5"}, "value": {"N": "20"}}]},
            "! the counter is below the highest id: {'pet': 20.5, 'counter': 20.0}",
        ),
        ("Scan", {"Items": [KEY | {"expires": SOON}]}, "! key bbbbbbbbbbbb (check)"),
        (
            "GetMetricStatistics",
            {"Datapoints": [{"Average": 0.002}]},
            "! that is more than the objective allows",
        ),
        (
            "ListStackResources",
            {"StackResourceSummaries": [MODIFIED]},
            "! Version is MODIFIED",
        ),
        ("GetAlias", {"FunctionVersion": "6"}, "! version 7 was deployed, and live"),
        (
            "DescribeStackDriftDetectionStatus",
            {"DetectionStatus": "DETECTION_FAILED"},
            "! drift detection did not end",
        ),
    ],
)
def test_what_is_wrong_fails_the_check(
    sound: Account,
    operation: str,
    answer: Any,
    line: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sound.answers[operation] = answer
    with pytest.raises(DeploymentError, match="see above"):
        check_stage(sound.stage)
    assert line in capsys.readouterr().out


def test_it_goes_on_past_a_missing_table_and_names_it(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    sound.client("dynamodb").delete_table(TableName="keys")
    assert status(sound.stage) == 2
    printed = capsys.readouterr().out
    assert "! _tables" in printed
    assert "drift: Counter" in printed
