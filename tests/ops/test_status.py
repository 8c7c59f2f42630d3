"""`status` and `check-stage` report each fault of a stage in one line."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.artifacts import write_last_good
from ops.stage import DeploymentError, Stage
from ops.status import check_stage, status
from tests.support.aws import Account

CASES = yaml.safe_load(Path(__file__).with_name("faults.yaml").read_text())


@pytest.fixture
def sound(live: Account) -> Account:
    """Let nothing be wrong in a stage."""
    live.client("dynamodb").update_time_to_live(
        TableName="animals",
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"},
    )
    live.answers |= CASES["sound"]
    return live


def test_sound_stage_passes_the_suite_of_the_commit_that_it_runs(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    check_stage(sound.stage)
    lines = capsys.readouterr().out.splitlines()
    assert "GET /v1/pets: 0.100% of its requests failed in 30 days" in lines
    assert "CloudFormation compared 1 resources" in lines
    assert sound.calls == [["suite", "zebra", "-rfE", "-m", "smoke_read_only"]]


@pytest.mark.parametrize("fault", CASES["faults"], ids=lambda fault: fault["line"])
def test_fault_is_reported_in_one_line(
    sound: Account, fault: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    sound.answers |= fault
    assert status(sound.stage) >= 1
    assert fault["line"] in capsys.readouterr().out.splitlines()


def test_commit_that_has_not_passed_its_check_is_reported(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    write_last_good(sound.stage, "ape")
    assert status(sound.stage) == 1
    line = "! it has not passed its check; the last that did: ape"
    assert line in capsys.readouterr().out


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
    # Only a check's hash begins with 00; anybody may be called so.
    key = {"hash": {"S": "b" * 64}, "label": {"S": "check"}, "created": {"N": "1"}}
    soon = {"N": str(int(time.time()) + 86_400)}
    sound.answers["Scan"] = {"Items": [key | {"expires": soon}]}
    assert status(sound.stage) == 1
    assert "! key bbbbbbbbbbbb (check) ends on " in capsys.readouterr().out


@pytest.mark.parametrize("drift", CASES["drifts"], ids=lambda drift: drift["line"])
def test_drift_is_reported_and_fails_the_check(
    sound: Account, drift: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    sound.answers["DescribeStackResourceDrifts"] = {"StackResourceDrifts": [drift]}
    assert status(sound.stage) == 0  # which does not wait for drift detection
    with pytest.raises(DeploymentError, match="1 things are not as they should be"):
        check_stage(sound.stage)
    assert drift["line"] in capsys.readouterr().out.splitlines()


def test_failed_drift_detection_fails_the_check(sound: Account) -> None:
    failed = {"DetectionStatus": "DETECTION_FAILED"}
    sound.answers["DescribeStackDriftDetectionStatus"] = failed
    with pytest.raises(DeploymentError, match="1 things"):
        check_stage(sound.stage)


def test_missing_table_is_named_and_the_rest_is_still_checked(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    sound.client("dynamodb").delete_table(TableName="animals")
    del sound.answers["DescribeContinuousBackups"]
    status(sound.stage)
    printed = capsys.readouterr().out
    assert "! animals cannot be checked: An error occurred" in printed
    assert "GET /v1/pets: 0.100%" in printed


def test_stage_without_a_stack_is_one_line(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(account.stage) == 1
    assert capsys.readouterr().out == "animal-store-production does not exist\n"


@pytest.mark.parametrize("state", CASES["advice"])
def test_state_in_which_nothing_can_be_deployed_has_advice(
    account: Account, state: str
) -> None:
    account.answers["DescribeStacks"] = {"Stacks": [{"StackStatus": state}]}
    stage = Stage("staging", account.client)
    advice = CASES["advice"][state]
    assert stage.state() == f"animal-store-staging is {state}{advice}"
