"""What an operator reads: the line of a request, which is its metrics too (EMF)."""

import json
import subprocess
import sys
import time
from datetime import datetime
from typing import Any

import pytest
from animal_store import api_key

from tests.support import handlers
from tests.support.fault_injection import THROTTLED, FaultyStore
from tests.support.stack import properties_of, staged
from tools import ROOT
from tools.local.events import EXAMPLE_KEY

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
    handlers.send("list-200")
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
        "request_id": "5e9f1c01-7d0b-4c57-9a4e-2f6f1d0a8b01",
        "extended_request_id": "YW5pbWFsMDF4eXo=",
        "Stage": "staging",
        "Operation": "listPets",
        "Status": "500",
        "StoreCalls": 2,
        "ColdStart": 1,
        "Code": "internal_error",
        "Errors": 1,
        "Version": "7",
        "KeyId": api_key.digest(EXAMPLE_KEY)[:12],
        "KeyLabel": "tests",
        "_aws": {
            "CloudWatchMetrics": [
                metric("Errors", "Code"),
                metric("Errors", "Version"),
            ]
        },
    }


# Of Logs Insights, of a query itself, of Lambda's own lines, and of an environment's first request.
OTHER_WORDS = (
    "and as asc by count desc fields filter in ispresent last latest limit or sort stats "
    "requests record ColdStart"
)
PUNCTUATION = str.maketrans("(),|=!*.", "        ")


def test_queries_of_the_runbook_ask_for_members_that_lines_have(
    store: FaultyStore, output: pytest.CaptureFixture[str]
) -> None:
    handlers.send("create-201")
    store.fail("UpdateItem", THROTTLED, THROTTLED, THROTTLED)
    handlers.send("create-201")
    lines = output.readouterr().out.splitlines()
    access_log = properties_of(staged(), "AWS::Serverless::Api")["AccessLogSetting"]
    members = {part.split('"')[1] for part in access_log["Format"].split(",")}
    members |= {name for line in lines for name in json.loads(line)}
    runbook = (ROOT / "docs/runbook.md").read_text().splitlines()
    starts = ("    fields ", "    filter ", "    | ")
    queries = " ".join(line for line in runbook if line.startswith(starts))

    words = queries.translate(PUNCTUATION).split()
    asked = {word for word in words if word[0].isalpha()} - {*OTHER_WORDS.split()}

    assert "requestId" in asked
    assert asked - members == set()
