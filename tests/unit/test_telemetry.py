"""The log line of a request, which holds its metrics too (EMF), and queries for it."""

import json
import re
import subprocess
import sys
import time
from datetime import datetime
from typing import Any

from animal_store import api_key

from tools import ROOT
from tools.key_table import EXAMPLE_KEY

# In a process of its own: an environment has one cold start.
TWO_REQUESTS_FOR_A_BROKEN_ITEM = """
import os
from tests.support import handlers
from animal_store import dynamodb

os.environ["AWS_LAMBDA_FUNCTION_VERSION"] = "7"
handlers.empty_store()
handlers.DATABASE.attach(dynamodb.client)
handlers.ask("PutItem", handlers.ANIMALS, Item={"pk": {"S": "pet"}, "id": {"N": "1"}})
for _ in range(2):
    handlers.send("get-200")
"""


def metric(name: str, dimension: str) -> dict[str, Any]:
    """Describe a metric as the embedded metric format does."""
    return {
        "Namespace": "AnimalStore",
        "Dimensions": [["Stage", "Operation", dimension]],
        "Metrics": [{"Name": name}],
    }


def test_line_is_the_log_entry_and_the_metrics_in_one() -> None:
    output = subprocess.check_output(
        [sys.executable, "-c", TWO_REQUESTS_FOR_A_BROKEN_ITEM],
        env={"PYTHONPATH": f"{ROOT}:{ROOT}/layers/common"},
    )

    _, line, _, second = map(json.loads, output.splitlines())
    assert "ColdStart" not in second
    timestamp, milliseconds = line.pop("timestamp"), line["_aws"].pop("Timestamp")
    assert timestamp.endswith("Z")
    moment = datetime.fromisoformat(timestamp).timestamp()
    assert round(moment * 1000) == milliseconds
    assert abs(moment - time.time()) < 60
    assert line.pop("Latency") > 0
    assert line == {
        "level": "INFO",
        "request_id": "5e9f1c0f-7d0b-4c57-9a4e-2f6f1d0a8b0f",
        "extended_request_id": "YW5pbWFsMTV4eXo=",
        "Stage": "staging",
        "Operation": "getPet",
        "Status": "500",
        "StoreCalls": 2,
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


def test_queries_of_the_runbook_ask_for_members_that_lines_have() -> None:
    runbook = (ROOT / "docs/runbook.md").read_text()
    queries = re.findall(r"(?m)^    (?:fields|filter|\|) .*", runbook)
    asked = set(re.findall(r"[A-Za-z]*[a-z][A-Z_]\w+", " ".join(queries)))
    # A function writes a line for each request, API Gateway one in its access log.
    telemetry = (ROOT / "layers/common/animal_store/telemetry.py").read_text()
    named = telemetry + (ROOT / "template.yaml").read_text()

    unknown = {member for member in asked if f'"{member}"' not in named}

    assert "StoreCalls" in asked
    assert unknown == {"exception_name"}  # is Powertools'
