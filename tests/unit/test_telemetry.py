"""The metrics that an operator's alarms and dashboard are made of, in CloudWatch's embedded metric format."""

import json
import time
from typing import Any

from animal_store import telemetry

from tests.unit.conftest import Output

COUNT, MILLISECONDS = "Count", "Milliseconds"


def directive(line: dict[str, Any]) -> dict[str, Any]:
    """Return what tells CloudWatch which members are metrics; there is exactly one."""
    (found,) = line["_aws"]["CloudWatchMetrics"]
    return dict(found)


def test_request_is_counted_by_operation_and_status(output: Output) -> None:
    telemetry.count_request("listPets", 200, 12.5, 2, cold_start=True)

    (line,) = output.lines
    assert directive(line) == {
        "Namespace": "AnimalStore",
        "Dimensions": [["Stage", "Operation", "Status", "service"]],
        "Metrics": [
            {"Name": "Requests", "Unit": COUNT},
            {"Name": "Latency", "Unit": MILLISECONDS},
            {"Name": "StoreCalls", "Unit": COUNT},
            {"Name": "ColdStart", "Unit": COUNT},
        ],
    }
    del line["_aws"]
    assert line == {
        "service": "animal-store",
        "Stage": "staging",
        "Operation": "listPets",
        "Status": "200",
        "Requests": [1],
        "Latency": [12.5],
        "StoreCalls": [2],
        "ColdStart": [1],
    }


def test_warm_request_counts_as_none_of_the_cold_starts(output: Output) -> None:
    telemetry.count_request("getPet", 404, 1.0, 0, cold_start=False)

    (line,) = output.lines
    assert (line["ColdStart"], line["StoreCalls"], line["Status"]) == ([0], [0], "404")


def test_error_is_counted_by_operation_and_code(output: Output) -> None:
    telemetry.count_error("createPet", "invalid_request")

    (line,) = output.lines
    assert directive(line) == {
        "Namespace": "AnimalStore",
        "Dimensions": [["Stage", "Operation", "Code", "service"]],
        "Metrics": [{"Name": "Errors", "Unit": COUNT}],
    }
    del line["_aws"]
    assert line == {
        "service": "animal-store",
        "Stage": "staging",
        "Operation": "createPet",
        "Code": "invalid_request",
        "Errors": [1],
    }


def test_deprecated_call_is_counted_by_the_label_of_the_key(output: Output) -> None:
    telemetry.count_deprecated_call("getPet", "partner \u00e9")

    (line,) = output.lines
    assert directive(line) == {
        "Namespace": "AnimalStore",
        "Dimensions": [["Stage", "Operation", "KeyLabel", "service"]],
        "Metrics": [{"Name": "DeprecatedCalls", "Unit": COUNT}],
    }
    del line["_aws"]
    assert line == {
        "service": "animal-store",
        "Stage": "staging",
        "Operation": "getPet",
        "KeyLabel": "partner \u00e9",
        "DeprecatedCalls": [1],
    }


def test_metrics_have_the_time_in_milliseconds(output: Output) -> None:
    before = int(time.time() * 1000)

    telemetry.count_error("createPet", "invalid_request")

    (line,) = output.lines
    assert before <= line["_aws"]["Timestamp"] <= time.time() * 1000


def test_metrics_of_one_call_do_not_leak_into_the_next(output: Output) -> None:
    telemetry.count_request("listPets", 200, 1.0, 1, cold_start=False)
    telemetry.count_error("getPet", "not_found")
    telemetry.count_request("createPet", 201, 1.0, 1, cold_start=False)

    assert [line["Operation"] for line in output.lines] == ["listPets", "getPet", "createPet"]
    assert ["Status" in line for line in output.lines] == [True, False, True]


def test_log_is_one_json_object_on_one_line(output: Output) -> None:
    telemetry.logger.info("two\nlines", operation="listPets")

    (line,) = output.text.splitlines()
    entry = json.loads(line)
    assert (entry["message"], entry["level"], entry["service"]) == ("two\nlines", "INFO", "animal-store")
    assert entry["operation"] == "listPets"
