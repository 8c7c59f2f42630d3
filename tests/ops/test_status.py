"""`status` and `check-stage` report a stage's problems on lines with `!`."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.artifacts import write_last_good
from ops.deploy import what_runs
from ops.stage import StageError
from ops.status import check_stage, status
from tests.support.aws import Account
from tools.key_table import KeyRecord

CASES = yaml.safe_load(Path(__file__).with_name("faults.yaml").read_text())


@pytest.fixture
def healthy(deployed: Account) -> Account:
    """Deploy a stage that has no problem."""
    deployed.answers |= CASES["sound"]
    return deployed


def test_check_runs_the_contract_suite_of_the_live_commit(healthy: Account) -> None:
    check_stage(healthy.stage)
    lines = healthy.printed().splitlines()
    assert "GET /v1/pets: 0.100% of its requests failed in 30 days" in lines
    assert healthy.calls == [["suite", "zebra", "-rfE", "-m", "smoke_read_only"]]


@pytest.mark.parametrize("fault", CASES["faults"], ids=lambda fault: fault["line"])
def test_problem_of_a_stage_is_reported_in_one_line(
    healthy: Account, fault: Any
) -> None:
    healthy.answers |= fault
    assert status(healthy.stage) == 1
    assert fault["line"] in healthy.printed().splitlines()


def test_keys_that_expire_too_soon_or_too_late_are_reported(healthy: Account) -> None:
    now = int(time.time())
    for key_hash, hours in (
        ("a1", 24 * 29),
        ("a2", 24 * 31),
        ("a3", None),
        ("001", 1),
        ("002", 3),
        ("003", None),
    ):
        expires = now + hours * 3600 if hours else None
        healthy.stage.keys().put(KeyRecord(key_hash, "\x1b[2J", 1, expires))
    assert status(healthy.stage) == 4
    printed = healthy.printed()
    assert "! key a1 ('\\x1b[2J') expires on " in printed
    assert "! key a3 ('\\x1b[2J') never expires\n" in printed
    assert "! key 002 ('\\x1b[2J') of the contract suite expires on " in printed
    assert "! key 003 ('\\x1b[2J') never expires\n" in printed


def test_access_log_that_has_stopped_is_reported(healthy: Account) -> None:
    del healthy.answers["GetMetricStatistics"]
    assert status(healthy.stage) == 0  # no requests, no lines
    for namespace, metric, dimension, value, minutes, problems in (
        ("AWS/ApiGateway", "Count", "ApiName", "animal-store-production", 7, 0),
        ("AWS/ApiGateway", "Count", "ApiName", "animal-store-production", 30, 1),
        ("AWS/Logs", "IncomingLogEvents", "LogGroupName", "access-log", 30, 0),
    ):
        datum = {
            "MetricName": metric,
            "Dimensions": [{"Name": dimension, "Value": value}],
            "Timestamp": datetime.now(UTC) - timedelta(minutes=minutes),
            "Value": 1,
        }
        healthy.client("cloudwatch").put_metric_data(
            Namespace=namespace, MetricData=[datum]
        )
        assert status(healthy.stage) == problems


def test_drift_and_failed_detection_are_reported(healthy: Account) -> None:
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
        "  {'PropertyPath': '/RetentionInDays', 'ExpectedValue': '90', "
    ) in healthy.printed()
    assert filters == [["MODIFIED", "DELETED"]]


def test_failed_status_check_does_not_stop_the_other_checks(healthy: Account) -> None:
    write_last_good(healthy.stage, "ape")
    healthy.client("dynamodb").delete_table(TableName="AnimalsTable")
    healthy.client("dynamodb").delete_table(TableName="ApiKeysTable")
    assert status(healthy.stage) == 4
    printed = healthy.printed()
    assert "! it may not have passed its check: last-good is ape; next, " in printed
    missing = "is missing: see docs/runbook.md, A table is gone\n"
    assert f"! AnimalsTable {missing}! ApiKeysTable {missing}" in printed
    assert "! keys cannot be checked: An error occurred" in printed
    assert "GET /v1/pets: 0.100%" in printed


STACK = "--stack-name animal-store-production"


@pytest.mark.parametrize(
    ("state", "next_step"),
    [
        (
            "IMPORT_ROLLBACK_FAILED",
            f"describe-events {STACK} --filters FailedEvents=true",
        ),
        ("REVIEW_IN_PROGRESS", "because nothing was created"),
        ("ROLLBACK_COMPLETE", f"aws cloudformation delete-stack {STACK}"),
        # The stacks of these two have no problem: the first advice is about `last-good`.
        ("UPDATE_IN_PROGRESS", "animal-store rollback production COMMIT"),
        ("UPDATE_ROLLBACK_COMPLETE", "animal-store rollback production COMMIT"),
        (
            "UPDATE_ROLLBACK_FAILED",
            f"; next: aws cloudformation continue-update-rollback {STACK}",
        ),
    ],
)
def test_problem_of_a_stack_is_reported_with_the_next_step(
    state: str, next_step: str, healthy: Account
) -> None:
    healthy.answers["DescribeStacks"] = {"Stacks": [{"StackStatus": state}]}
    assert next(what_runs(healthy.stage)).endswith(next_step)
