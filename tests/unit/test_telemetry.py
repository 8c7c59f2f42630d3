"""The line of a request: what an operator reads, and the metrics that alarms and dashboard are made of (EMF)."""

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from animal_store import telemetry

from tests.unit.conftest import Output
from tools.local.status import Metrics

COUNT, MILLISECONDS = "Count", "Milliseconds"


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


def directives(line: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return the units of the metrics by the dimension that each directive has beside the common ones."""
    found = {}
    for directive in line["_aws"]["CloudWatchMetrics"]:
        assert directive["Namespace"] == "AnimalStore"
        ((*common, dimension),) = directive["Dimensions"]
        assert common == ["service", "Stage", "Operation"]
        found[dimension] = {metric["Name"]: metric["Unit"] for metric in directive["Metrics"]}
    return found


def test_line_is_the_log_entry_and_the_metrics_in_one(output: Output) -> None:
    write()

    (line,) = output.lines
    assert directives(line) == {
        "Status": {"Requests": COUNT, "Latency": MILLISECONDS, "StoreCalls": COUNT, "ColdStart": COUNT}
    }
    del line["_aws"], line["timestamp"]
    assert line == {
        "level": "INFO",
        "message": "request",
        "service": "animal-store",
        "request_id": "c6af9ac6",
        "Stage": "staging",
        "Operation": "listPets",
        "Status": "200",
        "Requests": 1,
        "Latency": 12.5,
        "StoreCalls": 2,
        "ColdStart": 1,
    }


def test_error_is_counted_by_its_code_too(output: Output) -> None:
    write(operation="createPet", status=400, code="invalid_request")

    (line,) = output.lines
    assert directives(line).keys() == {"Status", "Code"}
    assert directives(line)["Code"] == {"Errors": COUNT}
    assert (line["Operation"], line["Code"], line["Errors"]) == ("createPet", "invalid_request", 1)


def test_deprecated_call_is_counted_by_the_label_of_the_key_too(output: Output) -> None:
    write(operation="getPet", key_label="partner \u00e9", deprecated=True)

    (line,) = output.lines
    assert directives(line).keys() == {"Status", "KeyLabel"}
    assert directives(line)["KeyLabel"] == {"DeprecatedCalls": COUNT}
    assert (line["Operation"], line["KeyLabel"], line["DeprecatedCalls"]) == ("getPet", "partner \u00e9", 1)


@pytest.mark.parametrize("who", [{"key_label": "partner"}, {"deprecated": True}])
def test_label_alone_and_deprecated_call_of_nobody_are_no_metric(who: dict[str, Any], output: Output) -> None:
    write(**who)

    (line,) = output.lines
    assert directives(line).keys() == {"Status"}
    assert "DeprecatedCalls" not in line
    assert line.get("KeyLabel") == who.get("key_label")


def test_cloudwatch_finds_each_metric_with_its_own_dimensions(output: Output) -> None:
    metrics = Metrics()
    write(operation="getPet", status=404, code="not_found", key_label="x", deprecated=True)

    metrics(output.text)

    common = {"service": "animal-store", "Stage": "staging", "Operation": "getPet"}
    assert metrics.summary()["invalid_metrics"] == 0
    assert metrics.summary()["tables"] == [
        [
            common
            | {"Status": "404", "Requests": 1, "StoreCalls": 2, "ColdStart": 1}
            | {"Latency p50": 12.5, "Latency p95": 12.5}
        ],
        [common | {"Code": "not_found", "Errors": 1}],
        [common | {"KeyLabel": "x", "DeprecatedCalls": 1}],
    ]


def test_warm_request_counts_as_none_of_the_cold_starts(output: Output) -> None:
    write(cold_start=False)

    assert output.lines[0]["ColdStart"] == 0


def test_one_line_leaves_nothing_in_the_next(output: Output) -> None:
    write(status=404, code="not_found", key_label="x", deprecated=True)
    write()

    _, second = output.lines
    assert directives(second).keys() == {"Status"}
    assert second.keys().isdisjoint({"Code", "Errors", "KeyLabel", "DeprecatedCalls"})


def test_time_is_in_milliseconds_for_cloudwatch_and_rfc_3339_for_lambda(output: Output) -> None:
    before = int(time.time() * 1000)

    write()

    (line,) = output.lines
    assert before <= line["_aws"]["Timestamp"] <= time.time() * 1000
    stamp = datetime.fromisoformat(line["timestamp"])
    assert stamp.utcoffset() == timedelta(0)
    assert int(stamp.timestamp() * 1000) == line["_aws"]["Timestamp"]


def test_trace_is_named(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")

    write()

    assert output.lines[0]["xray_trace_id"] == "1-5759e988-bd862e3fe1be46a994272793"


def test_lines_of_threads_do_not_mix(output: Output) -> None:
    def write_some(number: int) -> None:
        for _ in range(50):
            write(request_id=str(number))

    threads = [threading.Thread(target=write_some, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(output.lines) == 200


def test_log_of_a_failure_is_one_json_object_on_one_line(output: Output) -> None:
    telemetry.logger.warning("two\nlines", extra={"reason": "x"})

    (text,) = output.text.splitlines()
    entry = json.loads(text)
    assert (entry["message"], entry["level"], entry["service"]) == ("two\nlines", "WARNING", "animal-store")
    assert entry["reason"] == "x"
    assert datetime.now(UTC) - datetime.fromisoformat(entry["timestamp"]) < timedelta(minutes=1)
