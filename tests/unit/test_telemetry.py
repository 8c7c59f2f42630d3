"""The log line of a request, which holds its metrics too (EMF), and queries for it."""

import json
import re
from datetime import datetime
from typing import Any

import pytest
from animal_store import api_key, operation

from tests.support import handlers
from tests.support.fault_injection import LOST_REQUEST, FaultyStore
from tools import ROOT
from tools.key_table import EXAMPLE_KEY


def metric(name: str, dimension: str) -> dict[str, Any]:
    """Describe a metric as the embedded metric format does."""
    return {
        "Namespace": "AnimalStore",
        "Dimensions": [["Stage", "Operation", dimension]],
        "Metrics": [{"Name": name}],
    }


def test_log_line_of_a_failed_call_has_its_fields_and_metrics(
    monkeypatch: pytest.MonkeyPatch,
    store: FaultyStore,
    output: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(operation, "_cold_start", True)
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_VERSION", "7")
    nameless = {"pk": {"S": "pet"}, "id": {"N": "1"}}
    handlers.ask("PutItem", handlers.ANIMALS, Item=nameless)
    store.fail("GetItem", LOST_REQUEST)  # repeated after 25 ms

    handlers.send("get-200")

    _, line = map(json.loads, output.readouterr().out.splitlines())
    timestamp, milliseconds = line.pop("timestamp"), line["_aws"].pop("Timestamp")
    assert timestamp.endswith("Z")
    assert datetime.fromisoformat(timestamp).timestamp() * 1000 == milliseconds
    assert line == {
        "level": "INFO",
        "request_id": "5e9f1c0f-7d0b-4c57-9a4e-2f6f1d0a8b0f",
        "extended_request_id": "YW5pbWFsMTV4eXo=",
        "Stage": "staging",
        "Operation": "getPet",
        "Status": "500",
        "Latency": 25.0,
        "StoreCalls": 3,
        "ColdStart": 1,
        "Code": "internal_error",
        "Errors": 1,
        "Version": "7",
        "KeyId": api_key.digest(EXAMPLE_KEY)[:12],
        "KeyLabel": "tests",
        "DeprecatedCalls": 1,
        "_aws": {
            "CloudWatchMetrics": [
                metric("Errors", "Code"),
                metric("Errors", "Version"),
                metric("DeprecatedCalls", "KeyLabel"),
            ]
        },
    }


@pytest.mark.usefixtures("store")
def test_line_of_a_creation_has_its_id_and_no_metrics(
    monkeypatch: pytest.MonkeyPatch, output: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(operation, "_cold_start", False)

    handlers.send("create-201")

    line = json.loads(output.readouterr().out)
    assert line["CreatedId"] == 6
    assert line.keys().isdisjoint({"Code", "Version", "_aws"})


def test_queries_of_the_runbook_name_members_of_the_lines() -> None:
    runbook = (ROOT / "docs/runbook.md").read_text()
    queries = re.findall(r"(?m)^    (?:fields|filter|\|) .*", runbook)
    names = set(re.findall(r"[A-Za-z]*[a-z][A-Z_]\w+", " ".join(queries)))
    # A function writes a line for each request, API Gateway one in its access log.
    telemetry = (ROOT / "layers/common/animal_store/telemetry.py").read_text()
    sources = telemetry + (ROOT / "template.yaml").read_text()

    unknown = {name for name in names if f'"{name}"' not in sources}

    assert "StoreCalls" in names
    assert unknown == {"exception_name"}  # is Powertools'
