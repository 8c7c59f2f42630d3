"""What an operator reads: the line of a request, which is its metrics too (EMF)."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from animal_store import telemetry

from tools import ROOT

NOW = datetime(2027, 1, 15, 8, 0, 0, 123456, UTC)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "datetime", SimpleNamespace(now=lambda _: NOW))
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_VERSION", "7")


def write(**facts: Any) -> None:
    """Write the line of a listPets with these facts."""
    request = {"requestId": "c6af9ac6", "stage": "staging"}
    always: Any = {"latency_ms": 12.504, "store_calls": 2, "cold_start": False}
    telemetry.write("listPets", 200, request, **always | facts)


def test_line_is_the_log_entry_and_the_metrics_in_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Log bytes are the largest cost that grows with the number of requests."""
    write(cold_start=True)

    assert capsys.readouterr().out == (
        '{"level":"INFO","timestamp":"2027-01-15T08:00:00.123Z","request_id":"c6af9ac6",'
        '"Stage":"staging","Operation":"listPets","Status":"200","Latency":12.5,"StoreCalls":2,'
        '"ColdStart":1,"_aws":{"Timestamp":1800000000123,'
        '"CloudWatchMetrics":[{"Namespace":"AnimalStore",'
        '"Dimensions":[["Stage","Operation"]],"Metrics":[{"Name":"ColdStart"}]}]}}\n'
    )


@pytest.mark.parametrize(
    ("facts", "members", "metrics"),
    [
        ({"cold_start": True}, {"ColdStart": 1}, ["ColdStart:"]),
        ({"code": "x"}, {"Code": "x", "Errors": 1}, ["Errors: Code"]),
        (
            {"code": "internal_error"},
            {"Code": "internal_error", "Errors": 1, "Version": "7"},
            ["Errors: Code", "Errors: Version"],
        ),
        (
            {"code": "service_unavailable"},
            {"Code": "service_unavailable", "Errors": 1, "Version": "7"},
            ["Errors: Code", "Errors: Version"],
        ),
        (
            {"key_label": "caf\u00e9", "deprecated": True},
            {"KeyLabel": "caf\u00e9", "DeprecatedCalls": 1},
            ["DeprecatedCalls: KeyLabel"],
        ),
        ({"deprecated": True}, {}, []),
        ({"key_id": "3f9a", "pet_id": 7}, {"KeyId": "3f9a", "PetId": 7}, []),
    ],
    ids=[
        "cold",
        "error",
        "bug",
        "no store",
        "deprecated",
        "deprecated, nobody",
        "creation",
    ],
)
def test_line_has_what_happened_and_no_more(
    facts: dict[str, Any],
    members: dict[str, Any],
    metrics: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    write()
    write(**facts)

    plain, line = map(json.loads, capsys.readouterr().out.splitlines())
    found = []
    for directive in line.pop("_aws", {"CloudWatchMetrics": []})["CloudWatchMetrics"]:
        ((stage, operation, *others),) = directive["Dimensions"]
        assert (stage, operation) == ("Stage", "Operation")
        (metric,) = directive["Metrics"]
        found.append(f"{metric['Name']}: {' '.join(others)}".strip())
    assert line == plain | members
    assert found == metrics


def test_first_request_of_an_environment_is_a_cold_start() -> None:
    program = """
from tests.support import handlers
handlers.send("list-200", headers={"Authorization": []})
handlers.send("list-200", headers={"Authorization": []})
"""

    output = subprocess.check_output(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={"PYTHONPATH": "layers/common"},
    )

    first, second = map(json.loads, output.splitlines())
    assert first["ColdStart"] == 1
    assert "ColdStart" not in second
