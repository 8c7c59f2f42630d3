"""What an operator reads: the line of a request, which is its metrics too (EMF)."""

import json
import subprocess
import sys
import time
from datetime import datetime
from typing import Any

import pytest
from animal_store import telemetry

from tools import ROOT


def metric(name: str, *dimensions: str) -> dict[str, Any]:
    """Describe a metric as the embedded metric format does."""
    return {
        "Namespace": "AnimalStore",
        "Dimensions": [["Stage", "Operation", *dimensions]],
        "Metrics": [{"Name": name}],
    }


def test_line_is_the_log_entry_and_the_metrics_in_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_VERSION", "7")

    telemetry.write(
        "listPets",
        500,
        {"requestId": "c6af9ac6", "stage": "staging"},
        latency_ms=12.504,
        store_calls=2,
        cold_start=True,
        code="internal_error",
        key_label="caf\u00e9",
        deprecated=True,
    )

    line = json.loads(capsys.readouterr().out)
    timestamp, milliseconds = line.pop("timestamp"), line["_aws"].pop("Timestamp")
    assert timestamp.endswith("Z")
    moment = datetime.fromisoformat(timestamp).timestamp()
    assert round(moment * 1000) == milliseconds
    assert abs(moment - time.time()) < 60
    assert line == {
        "level": "INFO",
        "request_id": "c6af9ac6",
        "Stage": "staging",
        "Operation": "listPets",
        "Status": "500",
        "Latency": 12.5,
        "StoreCalls": 2,
        "ColdStart": 1,
        "Code": "internal_error",
        "Errors": 1,
        "Version": "7",
        "KeyLabel": "caf\u00e9",
        "DeprecatedCalls": 1,
        "_aws": {
            "CloudWatchMetrics": [
                metric("ColdStart"),
                metric("Errors", "Code"),
                metric("Errors", "Version"),
                metric("DeprecatedCalls", "KeyLabel"),
            ]
        },
    }


def test_first_request_of_an_environment_is_a_cold_start() -> None:
    program = """
from tests.support import handlers
for _ in range(2):
    handlers.send("list-200", headers={"Authorization": []})
"""
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT}/layers/common"}

    output = subprocess.check_output([sys.executable, "-c", program], env=environment)

    first, second = map(json.loads, output.splitlines())
    assert first["ColdStart"] == 1
    assert "ColdStart" not in second
