"""The line of a request: what an operator reads, and the metrics that alarms and dashboard are made of (EMF)."""

import json
import os
import subprocess
import sys
import time
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from animal_store import telemetry

from tools import ROOT

GIVEN: dict[str, Any] = {"latency_ms": 12.5, "store_calls": 2, "request_id": "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"}
LINE = {
    "level": "INFO",
    "request_id": GIVEN["request_id"],
    "Stage": "staging",
    "Operation": "getPet",
    "Status": "200",
    "Latency": 12.5,
    "StoreCalls": 2,
    "xray_trace_id": "1-5759e988-bd862e3fe1be46a994272793",
}


def write(monkeypatch: pytest.MonkeyPatch, **facts: Any) -> dict[str, Any]:
    """Write a line, in one piece, for the local gateway does so in threads."""
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")
    pieces: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", SimpleNamespace(write=pieces.append))
        telemetry.write("getPet", 200, **GIVEN | facts)
    (piece,) = pieces
    assert piece.endswith("\n")
    line: dict[str, Any] = json.loads(piece)
    return line


@pytest.mark.parametrize(
    ("facts", "members", "metrics"),
    [
        ({"cold_start": True}, {"ColdStart": 1}, {"Status": ["Latency", "ColdStart"]}),
        ({}, {}, {"Status": ["Latency"]}),
        ({"code": "not_found"}, {"Code": "not_found", "Errors": 1}, {"Status": ["Latency"], "Code": ["Errors"]}),
        (
            {"key_label": "\u00e9", "deprecated": True},
            {"KeyLabel": "\u00e9", "DeprecatedCalls": 1},
            {"Status": ["Latency"], "KeyLabel": ["DeprecatedCalls"]},
        ),
        ({"deprecated": True}, {}, {"Status": ["Latency"]}),
        ({"key_id": "3f9a", "pet_id": 7}, {"KeyId": "3f9a", "PetId": 7}, {"Status": ["Latency"]}),
    ],
    ids=["cold", "warm", "error", "deprecated", "deprecated, nobody", "creation"],
)
def test_line_is_the_log_entry_and_the_metrics_in_one(
    facts: dict[str, Any], members: dict[str, Any], metrics: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = {"code": "x", "key_label": "x", "deprecated": True, "key_id": "x", "pet_id": 1, "cold_start": True}
    write(monkeypatch, **everything)  # which leaves nothing in the next line
    before = int(time.time() * 1000)
    line = write(monkeypatch, **{"cold_start": False} | facts)

    emf, stamp = line.pop("_aws"), datetime.fromisoformat(line.pop("timestamp"))
    assert line == LINE | members
    # In milliseconds for CloudWatch, in RFC 3339 for Lambda.
    assert before <= emf["Timestamp"] == int(stamp.timestamp() * 1000) <= time.time() * 1000
    assert stamp.utcoffset() == timedelta(0)
    assert {directive["Namespace"] for directive in emf["CloudWatchMetrics"]} == {"AnimalStore"}
    assert metrics == {
        directive["Dimensions"][0][-1]: [metric["Name"] for metric in directive["Metrics"]]
        for directive in emf["CloudWatchMetrics"]
    }
    assert all(each["Dimensions"][0][:-1] == ["Stage", "Operation"] for each in emf["CloudWatchMetrics"])


def test_line_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log bytes are the largest cost that grows with the number of requests."""
    line = write(monkeypatch, cold_start=False, key_id="3f9a0c12d4e5", key_label="mobile app", pet_id=123456)

    assert len(json.dumps(line, separators=(",", ":"))) <= 480


def test_powertools_is_imported_when_something_goes_wrong_and_one_start_is_cold() -> None:
    code = """
import sys
import app
assert not [name for name in sys.modules if name.startswith("aws_lambda_powertools")]
class Context:
    def get_remaining_time_in_millis(self): return 10_000
for _ in range(2):
    app.handler({"requestContext": {"requestId": "1"}, "multiValueHeaders": 7}, Context())
"""
    path = os.pathsep.join(str(ROOT / folder) for folder in ("functions/list_pets", "layers/common"))

    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, check=True, capture_output=True, text=True
    )

    failure, request, _, second = map(json.loads, done.stdout.splitlines())
    assert (failure["level"], failure["message"]) == ("ERROR", "The operation failed.")
    assert (request["Code"], request["ColdStart"]) == ("internal_error", 1)
    assert "ColdStart" not in second
