"""The local store: its file, its responses, and the requests that it refuses."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.handlers import ANIMALS, TEMPLATE, items, reset_store, sdk, service
from tools import CommandError
from tools.local.open_store import client
from tools.local.store import Database, intercept_new_clients

COUNTER: Any = {"pk": {"S": "counter"}, "id": {"N": "0"}}
VALUES = {"ExpressionAttributeValues": {":one": {"N": "1"}}}


@pytest.fixture(autouse=True)
def _reset_store() -> None:
    reset_store()


def test_increments_of_two_connections_are_all_counted() -> None:
    def count(client: Any) -> int:
        response = client.update_item(
            TableName=ANIMALS,
            Key=COUNTER,
            UpdateExpression="ADD n :one",
            ReturnValues="UPDATED_NEW",
            **VALUES,
        )
        return int(response["Attributes"]["n"]["N"])

    with (
        closing(Database(service().folder.database)) as database,
        ThreadPoolExecutor(16) as threads,
    ):
        with intercept_new_clients(database.answer):
            other = client()
        numbers = threads.map(count, [sdk(), other] * 100)

    assert sorted(numbers) == [*range(1, 201)]


def test_read_does_not_wait_for_a_write() -> None:
    with closing(sqlite3.connect(service().folder.database)) as other:
        other.execute("BEGIN EXCLUSIVE")

        assert len(items("pet")) == 5


def test_store_works_if_sqlite_cannot_use_its_write_ahead_log(tmp_path: Path) -> None:
    (tmp_path / "store-shm").mkdir()  # SQLite's shared memory has this name

    with closing(Database(tmp_path / "store")) as database:
        with intercept_new_clients(database.answer):
            sdk = client()
        sdk.create_table(**TEMPLATE.tables["AnimalsTable"])
        sdk.put_item(TableName=ANIMALS, Item=COUNTER)

        assert sdk.scan(TableName=ANIMALS)["Items"] == [COUNTER]


def test_file_that_is_no_database_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.write_text("animals")

    with pytest.raises(CommandError, match=r"store cannot be used: .* move "):
        Database(path)

    assert path.read_text() == "animals"


@pytest.mark.parametrize(
    ("operation", "parameters", "message"),
    [
        (
            "delete_table",
            {},
            "The local store does not support the operation DeleteTable: ",
        ),
        (
            "query",
            {"ScanIndexForward": False},
            "the parameter ScanIndexForward of Query: add it to tools/local",
        ),
        (
            "query",
            {"IndexName": "by-status", "ConsistentRead": True},
            "Consistent reads are not supported on global indexes",
        ),
        (
            "query",
            {"KeyConditionExpression": "pk = :one AND n > :one", **VALUES},
            "Query condition missed key schema element: ['pk', 'id']",
        ),
        (
            "update_item",
            {"Key": COUNTER, "UpdateExpression": "REMOVE n"},
            "the update REMOVE n",
        ),
        (
            "put_item",
            {"Item": COUNTER, "ConditionExpression": "n < :one", **VALUES},
            "the condition 'n < :one': add it to tools/local",
        ),
        (
            "put_item",
            {"Item": COUNTER, "ConditionExpression": "id = :one", **VALUES},
            "The conditional request failed",
        ),
        # moto's tests show that AWS refuses the next two.
        (
            "put_item",
            {"Item": COUNTER, **VALUES},
            "Names and values must match those used in {}",
        ),
        (
            "put_item",
            {"Item": COUNTER, "ExpressionAttributeValues": {}},
            "Names and values must match those used in {}",
        ),
        (
            "update_item",
            {
                "Key": COUNTER | {"id": {"N": "9"}},
                "UpdateExpression": "ADD n :one",
                "ConditionExpression": "attribute_exists(pk)",
                **VALUES,
            },
            "The conditional request failed",
        ),
        (
            "put_item",
            {"Item": COUNTER, "ReturnValues": "ALL_OLD"},
            "the value ALL_OLD of ReturnValues",
        ),
    ],
)
def test_refused_request_says_why_and_changes_nothing(
    operation: str, parameters: dict[str, Any], message: str
) -> None:
    before = items()

    with pytest.raises(ClientError) as error:
        getattr(sdk(), operation)(TableName=ANIMALS, **parameters)

    assert message in str(error.value)
    assert items() == before


def test_failed_condition_cancels_the_transaction() -> None:
    """AWS's own answer is in moto's test_transact_write_items_put_conditional_expressions."""
    condition = {"ConditionExpression": "attribute_not_exists(pk)"}
    puts = [
        {"Put": {"TableName": ANIMALS, "Item": item, **condition}}
        for item in (COUNTER | {"pk": {"S": "new"}}, COUNTER)
    ]

    with pytest.raises(sdk().exceptions.TransactionCanceledException) as error:
        sdk().transact_write_items(TransactItems=puts)

    assert error.value.response["CancellationReasons"] == [
        {"Code": "None"},
        {
            "Code": "ConditionalCheckFailed",
            "Message": "The conditional request failed",
        },
    ]
    assert items("new") == []


def test_index_query_returns_a_sorted_page_and_its_last_key() -> None:
    for partition, number in [("other", "10"), ("pet", "-3"), ("pet", "-30")]:
        key = {"pk": {"S": partition}, "id": {"N": number}}
        item = key | {"status": {"S": "new"}}
        sdk().put_item(TableName=ANIMALS, Item=item)

    page = sdk().query(
        TableName=ANIMALS,
        IndexName="by-status",
        KeyConditionExpression="#status = :new AND id > :after",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":new": {"S": "new"}, ":after": {"N": "-99"}},
        Limit=2,
    )

    assert [item["id"]["N"] for item in page["Items"]] == ["-30", "-3"]
    assert page["LastEvaluatedKey"] == item | {"id": {"N": "-3"}}
