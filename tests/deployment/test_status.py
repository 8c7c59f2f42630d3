"""What `make status` says at three in the morning."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.aws import Aws, pack
from tools.deployment import commands, status
from tools.deployment.stage import DeploymentError
from tools.key_table import KeyRecord, KeyTable

ALARMS = ("ErrorsAlarm", "HeartbeatAlarm", "FloodAlarm", "GoneAlarm", "MutedAlarm")


def alarm(name: str, state: str, *, told: bool = True) -> dict[str, Any]:
    """Describe an alarm."""
    return {
        "AlarmName": f"animal-store-{name}",
        "ActionsEnabled": told,
        "StateReason": f"because of {name}",
        "StateUpdatedTimestamp": datetime(2027, 1, 31, 2, 30, tzinfo=UTC),
        "StateValue": state,
    }


@pytest.fixture
def production(aws: Aws, tmp_path: Path) -> Aws:
    """Let the stage have run two commits, with alarms and keys."""
    for commit in ("older", "newer"):
        artifact = pack(tmp_path / f"{commit}.zip", commit)
        commands.deploy(aws.stage, artifact.path, canary=False)
    aws.stack["Outputs"]["Deployed"] = "2027-01-30T12:00:00+00:00"
    for name in ALARMS:
        aws.resources[name] = ("AWS::CloudWatch::Alarm", f"animal-store-{name}")
    aws.answers["cloudwatch:DescribeAlarms"] = {
        "CompositeAlarms": [alarm("FloodAlarm", "OK")],
        "MetricAlarms": [
            alarm("ErrorsAlarm", "ALARM"),
            alarm("HeartbeatAlarm", "OK"),
            alarm("MutedAlarm", "OK", told=False),
        ],
    }
    return aws


def test_it_says_what_runs_and_how_it_is(
    production: Aws, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = KeyTable(production.stage.client("dynamodb"), "keys")
    keys.put(KeyRecord("a" * 64, "ann", created=1))
    keys.put(KeyRecord("b" * 64, "bob\x1b", 1, expires=1_900_000_000))
    newer, older = (pack(tmp_path / "a.zip", commit) for commit in ("newer", "older"))
    passed = production.stage.client("s3").list_objects_v2(
        Bucket="bucket", Prefix=f"passed/{older.name}"
    )
    at = passed["Contents"][0]["LastModified"]
    capsys.readouterr()

    status.status(production.stage)

    announced, *printed = capsys.readouterr().out.splitlines()
    assert announced.startswith("production: account 123456789012, eu-central-1, as ")
    assert printed == [
        "animal-store-production is UPDATE_COMPLETE",
        f"runs {newer.name} since 2027-01-30T12:00:00+00:00; it has passed its check",
        f"ran {older.name}, which passed its check on {at:%Y-%m-%d %H:%M}:",
        "  make rollback STAGE=production COMMIT=older",
        "ErrorsAlarm is ALARM since 2027-01-31 02:30: because of ErrorsAlarm",
        "HeartbeatAlarm is OK since 2027-01-31 02:30: because of HeartbeatAlarm",
        "GoneAlarm was deleted",
        "MutedAlarm is OK (muted) since 2027-01-31 02:30: because of MutedAlarm",
        "1 other alarms are OK",
        "2 API keys are valid; those that expire first:",
        "  2030-03-17 bbbbbbbbbbbb bob\\x1b",
    ]


def test_what_has_not_passed_its_check_is_marked(
    production: Aws, capsys: pytest.CaptureFixture[str]
) -> None:
    production.stack["Outputs"]["Artifact"] = "beside-1a2b"
    status.status(production.stage)
    printed = capsys.readouterr().out
    assert (
        "runs beside-1a2b since 2027-01-30T12:00:00+00:00; it has not passed" in printed
    )
    assert "ran newer-" in printed


def test_a_stage_without_a_stack_is_named(aws: Aws) -> None:
    with pytest.raises(DeploymentError, match="production has no stack"):
        status.status(aws.stage)
