"""What `make status` finds, one thing at a time, and that it goes on past what is gone."""

import time
from typing import Any

import pytest

from tests.support.aws import Account, pack
from tools.deployment.deploy import deploy
from tools.deployment.stage import DeploymentError
from tools.deployment.status import check_stage, status

SOON = str(int(time.time()) + 86_400)
GET = [{"Name": "Method", "Value": "GET"}]


def resource(name: str, kind: str, drift: str) -> dict[str, Any]:
    """Say what CloudFormation lists of a resource."""
    return {
        "LogicalResourceId": name,
        "PhysicalResourceId": "arn:aws:lambda:eu-central-1:123456789012:function:get:7",
        "ResourceType": kind,
        "DriftInformation": {"StackResourceDriftStatus": drift},
    }


@pytest.fixture
def sound(account: Account) -> Account:
    """Deploy a stage in which nothing is wrong."""
    deploy(account.stage, pack("zebra"))
    dynamodb = account.client("dynamodb")
    for table in ("animals", "keys"):
        dynamodb.update_continuous_backups(
            TableName=table,
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
        )
    dynamodb.update_time_to_live(
        TableName="animals",
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"},
    )
    account.client("cloudwatch").put_metric_data(
        Namespace="AnimalStore",
        MetricData=[{"MetricName": "Failed", "Dimensions": GET, "Value": 0.001}],
    )
    version = resource("GetVersion", "AWS::Lambda::Version", "UNKNOWN")
    account.answers |= {
        "GetAlias": {"FunctionVersion": "7"},
        "GetTopicAttributes": {"Attributes": {"SubscriptionsConfirmed": "1"}},
        "ListStackResources": {"StackResourceSummaries": [version]},
    }
    return account


def test_a_sound_stage_passes_and_nothing_unknown_is_in_sync(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    check_stage(sound.stage)
    printed = capsys.readouterr().out
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
        ("GetAlias", {"FunctionVersion": "6"}, "! version 7 was deployed, and live"),
        (
            "ListStackResources",
            {"StackResourceSummaries": [resource("Get", "Function", "MODIFIED")]},
            "! Get is MODIFIED",
        ),
        (
            "GetMetricStatistics",
            {"Datapoints": [{"Average": 0.002}]},
            "more than the objective allows",
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


def test_a_key_that_ends_and_a_counter_below_an_id_are_named(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    dynamodb = sound.client("dynamodb")
    key = {"hash": {"S": "b" * 64}, "label": {"S": "bob"}, "created": {"N": "1"}}
    dynamodb.put_item(TableName="keys", Item=key | {"expires": {"N": SOON}})
    pet = {"pk": {"S": "pet"}, "id": {"N": "20.5"}}
    dynamodb.put_item(TableName="animals", Item=pet)
    assert status(sound.stage) == 2
    printed = capsys.readouterr().out
    assert "! key bbbbbbbbbbbb (bob) ends on" in printed
    assert "! the counter is below the highest id" in printed


def test_it_goes_on_past_a_missing_table_and_names_it(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    sound.client("dynamodb").delete_table(TableName="keys")
    status(sound.stage)
    printed = capsys.readouterr().out
    assert "zebra runs since" in printed
    assert "! _keys" in printed
    assert "drift: {'UNKNOWN': 1}" in printed
