"""What an operator reads: the line of a request, which is its metrics too (EMF)."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from animal_store import telemetry

from tools import ROOT

NOW = datetime(2027, 1, 15, 8, 0, 0, 123456, UTC)
EVERYTHING: dict[str, Any] = {
    "code": "internal_error",
    "key_label": "x",
    "key_id": "x",
    "pet_id": 1,
    "cold_start": True,
    "deprecated": True,
}


def line_of(monkeypatch: pytest.MonkeyPatch, **facts: Any) -> str:
    """Write the line of a getPet with these facts, after one with all of them, and return it."""
    pieces: list[str] = []
    stdout = SimpleNamespace(write=pieces.append)
    monkeypatch.setattr(telemetry, "sys", SimpleNamespace(stdout=stdout))
    monkeypatch.setattr(telemetry, "datetime", SimpleNamespace(now=lambda _: NOW))
    monkeypatch.setenv(
        "_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3f;Parent=53995c3f;Sampled=1"
    )
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_VERSION", "7")
    for each in (EVERYTHING, {"cold_start": False} | facts):
        telemetry.write(
            "getPet",
            200,
            latency_ms=12.504,
            store_calls=2,
            request_id="c6af9ac6",
            **each,
        )
    return pieces[-1]  # each is one piece: the local gateway writes in threads


def test_line_is_the_log_entry_and_the_metrics_in_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Log bytes are the largest cost that grows with the number of requests."""
    assert line_of(monkeypatch) == (
        '{"level":"INFO","timestamp":"2027-01-15T08:00:00.123Z","request_id":"c6af9ac6",'
        '"Stage":"staging","Operation":"getPet","Status":"200","Latency":12.5,"StoreCalls":2,'
        '"xray_trace_id":"1-5759e988-bd862e3f","_aws":{"Timestamp":1800000000123,'
        '"CloudWatchMetrics":[{"Namespace":"AnimalStore",'
        '"Dimensions":[["Stage","Operation","Status"]],"Metrics":[{"Name":"Latency"}]}]}}\n'
    )


def directive(dimension: str, *metrics: str) -> dict[str, Any]:
    return {
        "Namespace": "AnimalStore",
        "Dimensions": [["Stage", "Operation", dimension]],
        "Metrics": [{"Name": metric} for metric in metrics],
    }


LATENCY, ERRORS = directive("Status", "Latency"), directive("Code", "Errors")


@pytest.mark.parametrize(
    ("facts", "members", "metrics"),
    [
        (
            {"cold_start": True},
            {"ColdStart": 1},
            [directive("Status", "Latency", "ColdStart")],
        ),
        ({"code": "x"}, {"Code": "x", "Errors": 1}, [LATENCY, ERRORS]),
        (
            {"code": "internal_error"},
            {"Code": "internal_error", "Errors": 1, "Version": "7"},
            [LATENCY, ERRORS, directive("Version", "Errors")],
        ),
        (
            {"key_label": "caf\u00e9", "deprecated": True},
            {"KeyLabel": "caf\u00e9", "DeprecatedCalls": 1},
            [LATENCY, directive("KeyLabel", "DeprecatedCalls")],
        ),
        ({"deprecated": True}, {}, [LATENCY]),
        ({"key_id": "3f9a", "pet_id": 7}, {"KeyId": "3f9a", "PetId": 7}, [LATENCY]),
    ],
    ids=["cold", "error", "bug", "deprecated", "deprecated, nobody", "creation"],
)
def test_line_has_what_happened_and_no_more(
    facts: dict[str, Any],
    members: dict[str, Any],
    metrics: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = json.loads(line_of(monkeypatch))

    line = json.loads(line_of(monkeypatch, **facts))

    assert line.pop("_aws") == plain.pop("_aws") | {"CloudWatchMetrics": metrics}
    assert line == plain | members


def test_powertools_is_imported_when_something_goes_wrong_and_one_start_is_cold() -> (
    None
):
    code = """
import sys, types
import app
assert not [name for name in sys.modules if name.startswith("aws_lambda_powertools")]
context = types.SimpleNamespace(get_remaining_time_in_millis=lambda: 10_000)
for _ in range(2):
    app.handler({"requestContext": {"requestId": "1"}, "multiValueHeaders": 7}, context)
"""
    path = f"{ROOT / 'functions/list_pets'}{os.pathsep}{ROOT / 'layers/common'}"

    output = subprocess.check_output(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, text=True
    )

    failure, first, _, second = map(json.loads, output.splitlines())
    assert failure["message"] == "The operation failed."
    assert (first["Code"], first["ColdStart"]) == ("internal_error", 1)
    assert "ColdStart" not in second
