"""The line of a request: what an operator reads, and the metrics that alarms and dashboard are made of (EMF)."""

import json
import os
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta
from typing import Any

import pytest
from animal_store import telemetry

from tests.unit.conftest import Output
from tools import ROOT
from tools.local.status import Metrics

TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"


def write(**differences: Any) -> None:
    given: dict[str, Any] = {
        "operation": "listPets",
        "status": 200,
        "latency_ms": 12.5,
        "store_calls": 2,
        "cold_start": True,
        "request_id": "c6af9ac6",
    }
    telemetry.write(**given | differences)


def metrics_by(line: dict[str, Any]) -> dict[str, list[str]]:
    """Return the names of the metrics by the dimension that each directive has in addition to the common ones."""
    found = {}
    for directive in line["_aws"]["CloudWatchMetrics"]:
        assert directive["Namespace"] == "AnimalStore"
        ((*common, dimension),) = directive["Dimensions"]
        assert common == ["Stage", "Operation"]
        found[dimension] = [metric["Name"] for metric in directive["Metrics"]]
    return found


LINE = {
    "level": "INFO",
    "request_id": "c6af9ac6",
    "Stage": "staging",
    "Operation": "listPets",
    "Status": "200",
    "Latency": 12.5,
    "StoreCalls": 2,
}
CREATED = {"key_id": "3f9a0c12d4e5", "key_label": "partner \u00e9", "pet_id": 7}


@pytest.mark.parametrize(
    ("differences", "members", "metrics"),
    [
        ({}, {"ColdStart": 1}, {"Status": ["Latency", "ColdStart"]}),
        ({"cold_start": False}, {}, {"Status": ["Latency"]}),
        (
            {"cold_start": False, "code": "not_found"},
            {"Code": "not_found", "Errors": 1},
            {"Status": ["Latency"], "Code": ["Errors"]},
        ),
        (
            {"cold_start": False, "key_label": "x", "deprecated": True},
            {"KeyLabel": "x", "DeprecatedCalls": 1},
            {"Status": ["Latency"], "KeyLabel": ["DeprecatedCalls"]},
        ),
        ({"cold_start": False, "deprecated": True}, {}, {"Status": ["Latency"]}),
        (
            {"cold_start": False, **CREATED},
            {"KeyId": "3f9a0c12d4e5", "KeyLabel": "partner \u00e9", "PetId": 7},
            {"Status": ["Latency"]},
        ),
    ],
    ids=["cold", "warm", "error", "deprecated", "deprecated, nobody", "creation"],
)
def test_line_is_the_log_entry_and_the_metrics_in_one(
    differences: dict[str, Any], members: dict[str, Any], metrics: dict[str, list[str]], output: Output
) -> None:
    write(code="x", key_label="x", deprecated=True, key_id="x", pet_id=1)  # which leaves nothing in the next line
    write(**differences)

    _, line = output.lines
    assert metrics_by(line) == metrics
    del line["_aws"], line["timestamp"]
    assert line == LINE | members


@pytest.mark.parametrize(
    ("most", "differences"),
    [
        (460, {}),
        (480, {"operation": "createPet", "status": 201, "pet_id": 123456}),
        (600, {"operation": "getPet", "deprecated": True}),
    ],
)
def test_line_is_short(most: int, differences: dict[str, Any], output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    """Log bytes are the largest cost that grows with the number of requests."""
    monkeypatch.setenv("_X_AMZN_TRACE_ID", TRACE)
    request_id = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"
    write(cold_start=False, request_id=request_id, key_id="3f9a0c12d4e5", key_label="mobile app", **differences)

    assert output.lines[0]["xray_trace_id"] == "1-5759e988-bd862e3fe1be46a994272793"
    assert len(output.text.encode()) <= most


def test_cloudwatch_finds_each_metric_with_its_own_dimensions(output: Output) -> None:
    metrics = Metrics()
    write(operation="getPet", status=404, code="not_found", key_label="x", deprecated=True)

    metrics(output.text)

    common = {"Stage": "staging", "Operation": "getPet"}
    assert metrics.summary()["tables"] == [
        [common | {"Status": "404", "Requests": 1, "Latency p50": 12.5, "Latency p95": 12.5, "ColdStart": 1}],
        [common | {"Code": "not_found", "Errors": 1}],
        [common | {"KeyLabel": "x", "DeprecatedCalls": 1}],
    ]


def test_time_is_in_milliseconds_for_cloudwatch_and_rfc_3339_for_lambda(output: Output) -> None:
    before = int(time.time() * 1000)

    write()

    (line,) = output.lines
    assert before <= line["_aws"]["Timestamp"] <= time.time() * 1000
    stamp = datetime.fromisoformat(line["timestamp"])
    assert stamp.utcoffset() == timedelta(0)
    assert int(stamp.timestamp() * 1000) == line["_aws"]["Timestamp"]


def test_lines_of_threads_do_not_mix(output: Output) -> None:
    def write_some() -> None:
        for _ in range(50):
            write()

    threads = [threading.Thread(target=write_some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(output.lines) == 200


def test_log_of_a_failure_is_one_json_object_on_one_line(output: Output) -> None:
    telemetry.logger().warning("two\nlines", extra={"reason": "x"})

    (entry,) = output.lines
    assert (entry["message"], entry["level"], entry["service"]) == ("two\nlines", "WARNING", "animal-store")
    assert entry["reason"] == "x"
    assert datetime.fromisoformat(entry["timestamp"]).tzinfo is not None


def test_powertools_is_imported_when_something_goes_wrong_and_not_before() -> None:
    code = """
import sys
import app
assert not [name for name in sys.modules if name.startswith("aws_lambda_powertools")]
class Context:
    def get_remaining_time_in_millis(self): return 10_000
app.handler({"requestContext": {"requestId": "1"}, "multiValueHeaders": 7}, Context())
assert "aws_lambda_powertools" in sys.modules
"""
    path = os.pathsep.join(str(ROOT / folder) for folder in ("functions/list_pets", "layers/common"))

    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, check=True, capture_output=True, text=True
    )

    failure, request = map(json.loads, done.stdout.splitlines())
    assert (failure["level"], failure["message"]) == ("ERROR", "The operation failed.")
    assert request["Code"] == "internal_error"
