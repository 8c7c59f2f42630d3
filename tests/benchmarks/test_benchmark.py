"""A cold start stays as fast as published; what the benchmark accepts, charges, prices and publishes is right."""

import json
import shutil
import subprocess
import sys
from contextlib import closing
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from benchmarks import report
from benchmarks.execution import Run
from benchmarks.fake_dynamodb import NAME, TEMPLATE, Cost, FakeDynamoDb
from benchmarks.operations import CREATE, LIST_20
from benchmarks.prices import usd_per_million
from tools import ROOT

RESULTS = json.loads((ROOT / "benchmarks/results.json").read_text())
QUERY = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": "pet"}}}
PET = {"pk": {"S": "pet"}, "id": {"N": "101"}, "name": {"S": "Rex"}, "categoryId": {"N": "3"}}


@pytest.mark.slow
@pytest.mark.skipif(
    sys.version_info[:2] != (3, 13) or not shutil.which("valgrind"),
    reason="the benchmark needs 3.13 and valgrind",
)
def test_cold_start_takes_at_most_5_percent_more_than_published() -> None:
    rows = [row for row in RESULTS["rows"] if row["packaging"] == "precompiled"]
    cold = {row["variant"]: row["cold_instructions"] for row in rows}

    counted = json.loads(
        subprocess.check_output(["make", "-s", "bench", "QUICK=1"], cwd=ROOT, text=True)
    )

    assert counted["ratio"] <= 1.05 * cold["ours"] / cold["bare"], counted


def test_published_tables_are_those_of_the_published_figures() -> None:
    assert (ROOT / "benchmarks/RESULTS.md").read_text() == report.markdown(RESULTS)


def test_units_are_those_of_what_is_read_and_of_the_index(tmp_path: Path) -> None:
    costs: list[tuple[str, dict[str, Any], Cost]] = [
        # 100 animals are more than 8 KB, 20 of them less than the 4 KB of a unit.
        ("Query", {**QUERY, "Limit": 20, "ConsistentRead": True}, Cost(1, read_units=1)),
        ("Query", {**QUERY, "Limit": 20}, Cost(1, read_units=0.5)),
        ("Query", {**QUERY, "Limit": 100, "ConsistentRead": True}, Cost(1, read_units=3)),
        ("PutItem", {"Item": PET}, Cost(1, write_units=1)),
        ("PutItem", {"Item": {**PET, "status": {"S": "sold"}}}, Cost(1, write_units=2)),
    ]
    with closing(FakeDynamoDb(tmp_path / "tables", 100, "key")) as dynamodb:
        for operation, request, cost in costs:
            headers, dynamodb.cost, dynamodb.hangs_up = Message(), Cost(), operation == "Query"
            headers["X-Amz-Target"] = f"DynamoDB_20120810.{operation}"
            body = json.dumps({"TableName": TEMPLATE.tables["AnimalsTable"].name, **request})

            assert (
                "Connection" in dynamodb.respond("/", headers, body.encode())[2]
            ) == dynamodb.hangs_up
            assert dynamodb.cost == cost


def test_price_is_the_sum_of_what_a_request_uses() -> None:
    run = Run(costs=[Cost(1, read_units=1)], log_bytes=600, body_bytes=100)

    # 3.50 gateway, 0.20 Lambda and 0.07 of its time, 0.125 DynamoDB, 0.25 traces, 0.06 transfer; the rest is logs
    assert usd_per_million(run, cpu_us=1000) == pytest.approx(4.83, abs=0.02)


def test_only_a_right_answer_is_measured() -> None:
    pets = [
        {"id": number, "name": NAME.format(number), "status": "sold"} for number in range(1, 21)
    ]
    wrong = [(500, pets), (200, pets[1:]), (200, [*pets[1:], {**pets[0], "name": "Rex"}])]

    assert LIST_20.is_right({"statusCode": 200, "body": json.dumps(pets)})
    assert not any(
        LIST_20.is_right({"statusCode": status, "body": json.dumps(body)}) for status, body in wrong
    )
    assert not CREATE.is_right({"statusCode": 201, "body": json.dumps(pets[0])})
