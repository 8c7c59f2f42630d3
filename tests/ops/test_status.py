"""`status` and `check-stage` report each fault of a stage in one line."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.artifacts import write_last_good
from ops.stage import StageError
from ops.status import check_stage, status
from tests.support.aws import Account

CASES = yaml.safe_load(Path(__file__).with_name("faults.yaml").read_text())


@pytest.fixture
def healthy(deployed: Account) -> Account:
    """Deploy a stage without any problem."""
    deployed.answers |= CASES["sound"]
    return deployed


def test_check_of_a_healthy_stage_runs_the_contract_suite_of_the_live_commit(
    healthy: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    check_stage(healthy.stage)
    lines = capsys.readouterr().out.splitlines()
    assert "GET /v1/pets: 0.100% of its requests failed in 30 days" in lines
    assert healthy.calls == [["suite", "zebra", "-rfE", "-m", "smoke_read_only"]]


@pytest.mark.parametrize("fault", CASES["faults"], ids=lambda fault: fault["line"])
def test_fault_of_a_stage_is_reported_in_one_line(
    healthy: Account, fault: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    healthy.answers |= fault
    assert status(healthy.stage) == 1
    assert fault["line"] in capsys.readouterr().out.splitlines()


def test_status_reports_a_live_commit_that_is_not_the_last_good_one(
    healthy: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    write_last_good(healthy.stage, "ape")
    assert status(healthy.stage) == 1
    line = "! it has not passed its check; the last commit that did: ape\n"
    assert line in capsys.readouterr().out


def test_api_key_that_expires_soon_is_reported(
    healthy: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    tomorrow = int(time.time()) + 86_400
    healthy.stage.keys().issue("bob", "live", tomorrow)
    assert status(healthy.stage) == 1
    assert f" (bob) expires on {time.ctime(tomorrow)}\n" in capsys.readouterr().out


def test_stack_drift_and_failed_drift_detection_are_reported_as_problems(
    healthy: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    healthy.answers |= CASES["drift"]
    filters = []
    healthy.client("cloudformation").meta.events.register(
        "provide-client-params.cloudformation.DescribeStackResourceDrifts",
        lambda params, **_: filters.append(params["StackResourceDriftStatusFilters"]),
    )
    with pytest.raises(StageError, match="3 problems were found"):
        check_stage(healthy.stage)
    assert (
        "! drift detection failed: Rate exceeded\n"
        "! AnimalsTable is DELETED\n"
        "! GetPetLogGroup is MODIFIED\n"
        "  /RetentionInDays is null, not 90\n"
    ) in capsys.readouterr().out
    assert filters == [["MODIFIED", "DELETED"]]


def test_error_during_one_check_is_reported_and_the_other_checks_still_run(
    healthy: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    healthy.client("dynamodb").delete_table(TableName="keys")
    assert status(healthy.stage) == 1
    printed_lines = capsys.readouterr().out
    assert "! keys cannot be checked: An error occurred" in printed_lines
    assert "GET /v1/pets: 0.100%" in printed_lines


def test_stack_that_blocks_deployments_is_reported_with_the_command_to_run(
    healthy: Account,
) -> None:
    stack = {"StackStatus": "UPDATE_ROLLBACK_FAILED"}
    healthy.answers["DescribeStacks"] = {"Stacks": [stack]}

    with pytest.raises(StageError) as error:
        status(healthy.stage)

    assert str(error.value) == (
        "animal-store-production is UPDATE_ROLLBACK_FAILED; next: aws cloudformation"
        " continue-update-rollback --stack-name animal-store-production"
    )
