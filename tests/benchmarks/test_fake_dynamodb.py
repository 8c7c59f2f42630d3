"""The benchmark's DynamoDB charges as AWS documents it."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fake_dynamodb import TEMPLATE, Cost, FakeDynamoDb, fill

PETS = TEMPLATE.tables["AnimalsTable"].name


@pytest.fixture
def dynamodb(tmp_path: Path) -> Iterator[FakeDynamoDb]:
    """Give tables with 100 animals, of which 20 are about 2 KB: less than the 4 KB of a read unit."""
    fill(tmp_path / "tables", 100, "key")
    with closing(FakeDynamoDb(tmp_path / "tables")) as fake:
        yield fake


def cost_of(dynamodb: FakeDynamoDb, operation: str, **request: Any) -> Cost:
    dynamodb.cost = Cost()
    body = json.dumps({"TableName": PETS, **request}).encode()
    answer = asyncio.run(dynamodb.respond("/", {"x-amz-target": f"DynamoDB_20120810.{operation}"}, body))
    assert answer.status == 200, answer.body
    return dynamodb.cost


@pytest.mark.parametrize(
    ("limit", "consistent", "units"), [(20, True, 1), (20, False, 0.5), (100, True, 3), (100, False, 1.5)]
)
def test_read_costs_what_it_returns_and_half_of_it_when_eventually_consistent(
    limit: int, consistent: bool, units: float, dynamodb: FakeDynamoDb
) -> None:
    condition = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": "pet"}}}
    query = {**condition, "Limit": limit, "ConsistentRead": consistent}

    assert cost_of(dynamodb, "Query", **query) == Cost(requests=1, read_units=units)
    assert cost_of(dynamodb, "Query", **query) == Cost(requests=1, read_units=units)  # out of memory


@pytest.mark.parametrize(("status", "units"), [({}, 1), ({"status": {"S": "sold"}}, 2)])
def test_write_costs_twice_when_the_index_has_the_animal_too(
    status: dict[str, Any], units: int, dynamodb: FakeDynamoDb
) -> None:
    pet = {"pk": {"S": "pet"}, "id": {"N": "101"}, "name": {"S": "Rex"}, "categoryId": {"N": "3"}}

    assert cost_of(dynamodb, "PutItem", Item=pet | status) == Cost(requests=1, write_units=units)
