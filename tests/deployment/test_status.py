"""What `make status` finds, one thing at a time, and that it goes on past what is gone."""

import time
from typing import Any

import pytest

from tests.support.aws import Account, pack
from tools.deployment.deploy import deploy
from tools.deployment.stage import DeploymentError
from tools.deployment.status import check_stage, status

SOON = str(int(time.time()) + 86_400)
KEY = {"hash": {"S": "b" * 64}, "label": {"S": "bob"}, "created": {"N": "1"}}
GET = [{"Name": "Method", "Value": "GET"}]
RECOVERY = {"PointInTimeRecoveryStatus": "ENABLED"}


def resources(drift: str) -> Any:
    """Say what CloudFormation lists of a stack of one resource."""
    version = {
        "LogicalResourceId": "Version",
        "PhysicalResourceId": "arn:aws:lambda:eu-central-1:123456789012:function:get:7",
        "ResourceType": "AWS::Lambda::Version",
        "DriftInformation": {"StackResourceDriftStatus": drift},
    }
    return {"StackResourceSummaries": [version]}


@pytest.fixture
def sound(account: Account) -> Account:
    """Deploy a stage in which nothing is wrong."""
    deploy(account.stage, pack("zebra"))
    account.client("dynamodb").update_time_to_live(
        TableName="animals",
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"},
    )
    account.client("cloudwatch").put_metric_data(
        Namespace="AnimalStore",
        MetricData=[{"MetricName": "Failed", "Dimensions": GET, "Value": 0.001}],
    )
    account.answers |= {
        "DescribeContinuousBackups": {
            "ContinuousBackupsDescription": {"PointInTimeRecoveryDescription": RECOVERY}
        },
        "GetAlias": {"FunctionVersion": "7"},
        "GetMetricStatistics": {"Datapoints": [{"Average": 0.001}]},
        "GetTopicAttributes": {"Attributes": {"SubscriptionsConfirmed": "1"}},
        "ListStackResources": resources("UNKNOWN"),
    }
    return account


def test_a_sound_stage_passes_and_nothing_unknown_is_in_sync(sound: Account) -> None:
    check_stage(sound.stage)
    printed = sound.printed()
    assert f"0.100% failed in 30 days: {GET}" in printed
    assert "drift: {'UNKNOWN': 1}" in printed
    assert "tests/contract" in sound.started[-1]


@pytest.mark.parametrize(
    ("operation", "answer", "line"),
    [
        (
            "DescribeAlarms",
            {"MetricAlarms": [{"AlarmName": "Slow", "StateValue": "ALARM"}]},
            "! Slow rings",
        ),
        (
            "GetTopicAttributes",
            {"Attributes": {"SubscriptionsConfirmed": "0"}},
            "! nobody has confirmed",
        ),
        ("DescribeContinuousBackups", {}, "! point-in-time recovery is off"),
        (
            "DescribeTimeToLive",
            {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLING"}},
            "! time to live should be ENABLED: {'TableName': 'animals'}",
        ),
        (
            "Query",
            {"Items": [{"id": {"N": "20.5"}, "value": {"N": "20"}}]},
            "! the counter is below the highest id: {'pet': 20.5, 'counter': 20.0}",
        ),
        (
            "Scan",
            {"Items": [KEY | {"expires": {"N": SOON}}]},
            "! key bbbbbbbbbbbb (bob)",
        ),
        (
            "GetMetricStatistics",
            {"Datapoints": [{"Average": 0.002}]},
            "! that is more than the objective allows",
        ),
        ("ListStackResources", resources("MODIFIED"), "! Version is MODIFIED"),
        ("GetAlias", {"FunctionVersion": "6"}, "! version 7 was deployed, and live"),
    ],
)
def test_what_is_wrong_fails_the_check(
    sound: Account, operation: str, answer: Any, line: str
) -> None:
    sound.answers[operation] = answer
    with pytest.raises(DeploymentError, match="see above"):
        check_stage(sound.stage)
    assert line in sound.printed()


def test_it_goes_on_past_a_missing_table_and_names_it(sound: Account) -> None:
    sound.client("dynamodb").delete_table(TableName="keys")
    assert status(sound.stage) == 2
    printed = sound.printed()
    assert "zebra runs since" in printed
    assert "! _tables" in printed
    assert "! _keys" in printed
    assert "drift: {'UNKNOWN': 1}" in printed
