"""`status` and `check-stage` report each fault of a stage in one line."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.artifacts import write_last_good
from ops.stage import DeploymentError
from ops.status import check_stage, status
from tests.support.aws import Account

CASES = yaml.safe_load(Path(__file__).with_name("faults.yaml").read_text())


@pytest.fixture
def sound(live: Account) -> Account:
    """Let nothing be wrong in a stage."""
    live.answers |= CASES["sound"]
    return live


def test_sound_stage_passes_the_suite_of_the_commit_that_it_runs(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    check_stage(sound.stage)
    lines = capsys.readouterr().out.splitlines()
    assert "GET /v1/pets: 0.100% of its requests failed in 30 days" in lines
    assert sound.calls == [["suite", "zebra", "-rfE", "-m", "smoke_read_only"]]


@pytest.mark.parametrize("fault", CASES["faults"], ids=lambda fault: fault["line"])
def test_fault_is_reported_in_one_line(
    sound: Account, fault: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    sound.answers |= fault
    assert status(sound.stage) == 1
    assert fault["line"] in capsys.readouterr().out.splitlines()


def test_commit_that_has_not_passed_its_check_is_reported(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    write_last_good(sound.stage, "ape")
    assert status(sound.stage) == 1
    line = "! it has not passed its check; the last that did: ape\n"
    assert line in capsys.readouterr().out


def test_client_key_that_ends_soon_is_reported(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    # Only a check's hash begins with 00; anybody may be called so.
    key = {"hash": {"S": "b" * 64}, "label": {"S": "check"}, "created": {"N": "1"}}
    soon = {"N": str(int(time.time()) + 86_400)}
    sound.answers["Scan"] = {"Items": [key | {"expires": soon}]}
    assert status(sound.stage) == 1
    assert "! key bbbbbbbbbbbb (check) ends on " in capsys.readouterr().out


def test_drift_is_reported_and_fails_the_check(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    retention = {
        "PropertyPath": "/RetentionInDays",
        "ExpectedValue": "90",
        "ActualValue": "null",
    }
    sound.answers["DescribeStackResourceDrifts"] = {
        "StackResourceDrifts": [
            {"LogicalResourceId": "Table", "StackResourceDriftStatus": "DELETED"},
            {
                "LogicalResourceId": "Log",
                "StackResourceDriftStatus": "MODIFIED",
                "PropertyDifferences": [retention],
            },
        ]
    }
    with pytest.raises(DeploymentError, match="2 things are not as they should be"):
        check_stage(sound.stage)
    assert (
        "! Table is DELETED\n! Log is MODIFIED\n  /RetentionInDays is null, not 90\n"
    ) in capsys.readouterr().out


def test_failed_drift_detection_fails_the_check(sound: Account) -> None:
    failed = {"DetectionStatus": "DETECTION_FAILED"}
    sound.answers["DescribeStackDriftDetectionStatus"] = failed
    with pytest.raises(DeploymentError, match="1 things"):
        check_stage(sound.stage)


def test_check_that_cannot_be_made_is_named_and_the_rest_is_still_checked(
    sound: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    sound.client("dynamodb").delete_table(TableName="keys")
    assert status(sound.stage) == 1
    printed = capsys.readouterr().out
    assert "! keys cannot be checked: An error occurred" in printed
    assert "GET /v1/pets: 0.100%" in printed


def test_stage_without_a_stack_is_one_line(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(account.stage) == 1
    assert capsys.readouterr().out == "animal-store-production does not exist\n"


def test_state_in_which_nothing_can_be_deployed_has_advice(account: Account) -> None:
    account.answers["DescribeStacks"] = {
        "Stacks": [{"StackStatus": "ROLLBACK_COMPLETE"}]
    }
    assert account.stage.state() == (
        "animal-store-production is ROLLBACK_COMPLETE; next: an administrator: "
        "aws cloudformation delete-stack --stack-name animal-store-production"
    )
