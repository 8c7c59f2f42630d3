"""What an operator reads: the line of a request, which is its metrics too (EMF), and what a key added."""

import json
import os
import re
import subprocess
import sys
import time
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from animal_store import api_key, telemetry

from tests.support import handlers
from tests.support.fault_injection import FaultyStore
from tests.support.requests import Send
from tools import ROOT

LINE = {
    "level": "INFO",
    "request_id": "c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
    "Stage": "staging",
    "Operation": "getPet",
    "Status": "200",
    "Latency": 12.5,
    "StoreCalls": 2,
    "xray_trace_id": "1-5759e988-bd862e3fe1be46a994272793",
}
EVERYTHING = {
    "code": "x",
    "key_label": "x",
    "key_id": "x",
    "pet_id": 1,
    "cold_start": True,
    "deprecated": True,
}
CALLED, COUNTED = (
    {"key_label": "caf\u00e9", "deprecated": True},
    {"KeyLabel": "caf\u00e9", "DeprecatedCalls": 1},
)


@pytest.mark.parametrize(
    ("facts", "members", "metrics", "size"),
    [
        ({"cold_start": True}, {"ColdStart": 1}, {"Status": ["Latency", "ColdStart"]}, 480),
        ({}, {}, {"Status": ["Latency"]}, 430),
        (
            {"code": "x"},
            {"Code": "x", "Errors": 1},
            {"Status": ["Latency"], "Code": ["Errors"]},
            600,
        ),
        (
            {"code": "internal_error"},
            {"Code": "internal_error", "Errors": 1, "Version": "7"},
            {"Status": ["Latency"], "Code": ["Errors"], "Version": ["Errors"]},
            700,
        ),
        (CALLED, COUNTED, {"Status": ["Latency"], "KeyLabel": ["DeprecatedCalls"]}, 600),
        ({"deprecated": True}, {}, {"Status": ["Latency"]}, 430),
        (
            {"key_id": "3f9a", "pet_id": 7},
            {"KeyId": "3f9a", "PetId": 7},
            {"Status": ["Latency"]},
            480,
        ),
    ],
    ids=["cold", "warm", "error", "bug", "deprecated", "deprecated, nobody", "creation"],
)
def test_line_is_short_and_the_log_entry_and_the_metrics_in_one(
    facts: Any,
    members: dict[str, Any],
    metrics: dict[str, list[str]],
    size: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Log bytes are the largest cost that grows with the number of requests."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_VERSION", "7")
    monkeypatch.setenv(
        "_X_AMZN_TRACE_ID", f"Root={LINE['xray_trace_id']};Parent=53995c3f42cd8ad8;Sampled=1"
    )
    pieces: list[str] = []
    monkeypatch.setattr(
        telemetry, "sys", SimpleNamespace(stdout=SimpleNamespace(write=pieces.append))
    )
    given: Any = {
        "latency_ms": 12.5,
        "store_calls": 2,
        "cold_start": False,
        "request_id": LINE["request_id"],
    }

    telemetry.write("getPet", 200, **given | EVERYTHING)  # which leaves nothing in the next line
    before = int(time.time() * 1000)
    telemetry.write("getPet", 200, **given | facts)

    _, text = pieces  # each in one piece, for the local gateway writes in threads
    assert text.endswith("\n")
    assert len(text.encode()) <= size
    line = json.loads(text)
    emf, stamp = line.pop("_aws"), datetime.fromisoformat(line.pop("timestamp"))
    assert line == LINE | members
    # In milliseconds for CloudWatch, in RFC 3339 for Lambda.
    assert before <= emf["Timestamp"] == int(stamp.timestamp() * 1000) <= time.time() * 1000
    assert stamp.utcoffset() == timedelta(0)
    for directive in emf["CloudWatchMetrics"]:
        ((*common, dimension),) = directive["Dimensions"]
        assert (directive["Namespace"], common) == ("AnimalStore", ["Stage", "Operation"])
        assert [metric["Name"] for metric in directive["Metrics"]] == metrics[dimension]
    assert len(emf["CloudWatchMetrics"]) == len(metrics)


def test_powertools_is_imported_when_something_goes_wrong_and_one_start_is_cold() -> None:
    code = """
import sys, types
import app
assert not [name for name in sys.modules if name.startswith("aws_lambda_powertools")]
context = types.SimpleNamespace(get_remaining_time_in_millis=lambda: 10_000)
for _ in range(2):
    app.handler({"requestContext": {"requestId": "1"}, "multiValueHeaders": 7}, context)
"""
    path = os.pathsep.join(
        str(ROOT / folder) for folder in ("functions/list_pets", "layers/common")
    )

    output = subprocess.check_output(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, text=True
    )

    failure, request, _, second = map(json.loads, output.splitlines())
    assert (failure["level"], failure["message"]) == ("ERROR", "The operation failed.")
    assert (request["Code"], request["ColdStart"]) == ("internal_error", 1)
    assert "ColdStart" not in second


def test_table_tells_which_animals_a_key_added(send: Send, store: FaultyStore) -> None:
    """By the runbook's command; its query of the log is checked in tests/docs/test_runbook.py."""
    section = (
        (ROOT / "docs/runbook.md")
        .read_text()
        .split("### What did a key do?\n")[1]
        .split("\n## ")[0]
    )
    (attribute,) = re.findall(r"--filter-expression '(\w+) = :key'", section)
    (columns,) = re.findall(r"--projection-expression '(.+)'", section)
    key, tables = api_key.generate("test"), handlers.client(store.database)
    handlers.add_key(tables, key)
    send("create_pet")  # with another key
    for headers in ({}, {"Idempotency-Key": ["key"]}):
        send("create_pet", headers={"Authorization": [f"Bearer {key}"], **headers})
    added = [
        item
        for item in handlers.items(tables)
        if item.get(attribute) == {"S": api_key.digest(key)[:12]}
    ]
    assert [item["id"]["N"] for item in added] == ["7", "8"]
    assert all(item.keys() >= set(columns.split(", ")) for item in added)
