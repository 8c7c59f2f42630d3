"""The benchmark's tables answer and charge as DynamoDB documents it."""

import json
from typing import Any

import pytest

from benchmarks.operations import API_KEY
from benchmarks.table import Animals, UnknownRequestError


def ask(tables: Animals, operation: str, **request: Any) -> Any:
    return json.loads(tables.answer(f"DynamoDB_20120810.{operation}", json.dumps(request).encode()))


def query(tables: Animals, **more: Any) -> Any:
    condition = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": "pet"}}}
    return ask(tables, "Query", **condition, Limit=20, **more)


def test_a_page_starts_after_the_last_key_of_the_page_before() -> None:
    tables = Animals(30, API_KEY)

    first = query(tables)
    second = query(tables, ExclusiveStartKey=first["LastEvaluatedKey"])

    ids = [int(item["id"]["N"]) for item in first["Items"] + second["Items"]]
    assert ids == list(range(1, 31))
    assert "LastEvaluatedKey" not in second


@pytest.mark.parametrize("times", [1, 2])
def test_a_read_is_charged_by_all_it_returns_and_half_when_eventually_consistent(times: int) -> None:
    tables = Animals(100, API_KEY)  # 20 of them are about 2 KB: one unit of 4 KB

    for _ in range(times):
        query(tables)
    assert tables.consumed.read_units == 0.5 * times

    query(tables, ConsistentRead=True)
    assert tables.consumed.read_units == 0.5 * times + 1
    assert tables.consumed.requests == times + 1


def test_a_write_is_charged_for_the_index_too_when_the_animal_is_in_it() -> None:
    tables = Animals(0, API_KEY)
    pet = {"pk": {"S": "pet"}, "name": {"S": "Rex"}, "categoryId": {"N": "3"}}

    ask(tables, "PutItem", Item=pet | {"id": {"N": "1"}})
    assert tables.consumed.write_units == 1

    ask(tables, "PutItem", Item=pet | {"id": {"N": "2"}, "status": {"S": "sold"}})
    assert tables.consumed.write_units == 3


def test_a_request_of_another_kind_is_refused() -> None:
    with pytest.raises(UnknownRequestError):
        query(Animals(1, API_KEY), FilterExpression="id > :pk")
