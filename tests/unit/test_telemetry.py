"""The log line of a request, which also has its metrics (EMF), and the runbook's queries."""

import json
import re
from datetime import datetime
from typing import Any

import pytest
from animal_store import api_key

from tests.support import handlers
from tests.support.fault_injection import (
    LOST_REQUEST,
    UNREADABLE,
    Attempt,
    FaultyStore,
    answering,
)
from tests.support.handlers import layer_copy
from tools import ROOT
from tools.key_table import EXAMPLE_KEY


def metric(name: str, dimension: str) -> dict[str, Any]:
    """Return the directive that declares a metric in the embedded metric format."""
    return {
        "Namespace": "AnimalStore",
        "Dimensions": [["Stage", "Operation", dimension]],
        "Metrics": [{"Name": name}],
    }


def test_log_line_of_a_failed_request(
    monkeypatch: pytest.MonkeyPatch, store: FaultyStore
) -> None:
    handlers.send("list-401")  # the next request is not the environment's first
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_VERSION", "7")
    # The key is read again after 100 ms, and the stored animal has no name.
    store.fail(
        "GetItem",
        UNREADABLE["response with a wrong checksum"],
        Attempt.send_to_store,
        answering(200, b'{"Item": {"id": {"N": "1"}}}'),
    )

    _, line = handlers.send("get-200").lines

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
        "Latency": 100.0,
        "StoreCalls": 3,
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


def test_first_request_is_a_cold_start(capsys: pytest.CaptureFixture[str]) -> None:
    with layer_copy():
        gateway = handlers.service().gateway()
        gateway.invoke("ListPetsFunction", handlers.EVENTS["list-401"])

    assert json.loads(capsys.readouterr().out)["ColdStart"] == 1


@pytest.mark.usefixtures("store")
def test_creation_logs_the_id_of_the_animal_and_no_metrics() -> None:
    (line,) = handlers.send("create-201").lines

    assert line["CreatedId"] == 6
    assert line.keys().isdisjoint({"Code", "Version", "_aws"})


def test_multiword_names_in_runbook_queries_are_logged(store: FaultyStore) -> None:
    runbook = (ROOT / "docs/runbook.md").read_text()
    queries = re.findall(r"(?m)^    (?:fields|filter|\|) .*", runbook)
    names = set(re.findall(r"[A-Za-z]*[a-z][A-Z_]\w+", " ".join(queries)))
    # The format of API Gateway's access log is in the template.
    lines = (ROOT / "template.yaml").read_text()
    for name in handlers.EVENTS:
        lines += handlers.send(name).log
    store.fail("Query", LOST_REQUEST, LOST_REQUEST, LOST_REQUEST)
    lines += handlers.send("list-200").log

    missing_names = {name for name in names if f'"{name}"' not in lines}

    assert "StoreCalls" in names
    # Only an environment's first line has ColdStart.
    assert missing_names <= {"ColdStart"}
