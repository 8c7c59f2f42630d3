"""The local store: its file, its writers, what it answers and what it refuses."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.handlers import ANIMALS, TEMPLATE, ask, empty_store, items
from tools.local import LocalError
from tools.local.store import Database

COUNTER: Any = {"pk": {"S": "counter"}, "id": {"N": "0"}}
ONE = {"ExpressionAttributeValues": {":one": {"N": "1"}}}
UNKNOWN = "The local store does not know"
HERE = ": tools/local/operations.py"


@pytest.fixture(autouse=True)
def _empty_store() -> None:
    empty_store()


def open_with_table(path: Path) -> Database:
    """Open the store of a file as a process does."""
    database = Database(path)
    table = TEMPLATE.tables["AnimalsTable"]
    ask("CreateTable", ANIMALS, database=database, **table)
    return database


def count(database: Database) -> int:
    """Add 1 to the counter's number, and return it."""
    update = {"Key": COUNTER, "UpdateExpression": "ADD n :one", **ONE}
    response = ask(
        "UpdateItem", ANIMALS, database=database, ReturnValues="UPDATED_NEW", **update
    )
    return int(response["Attributes"]["n"]["N"])


def test_writers_do_not_overwrite_each_other(tmp_path: Path) -> None:
    # Two stores share what processes do: the file alone.
    paths = [tmp_path / "new/folder/store"] * 2
    with ThreadPoolExecutor(16) as threads:
        stores = [*threads.map(open_with_table, paths)]
        numbers = [*threads.map(count, stores * 25)]
    for store in stores:
        store.close()

    assert sorted(numbers) == list(range(1, 51))


def test_file_is_its_owners(tmp_path: Path) -> None:
    Database(tmp_path / "store").close()

    assert oct((tmp_path / "store").stat().st_mode) == "0o100600"


@pytest.mark.parametrize("position", [0, 60], ids=["no database", "another version"])
def test_other_file_is_refused_and_left_as_it_is(tmp_path: Path, position: int) -> None:
    path = tmp_path / "store"
    Database(path).close()
    with path.open("r+b") as file:
        file.seek(position)
        file.write(b"1234")
    content = path.read_bytes()

    with pytest.raises(LocalError, match=r"store cannot be used: .* make reset"):
        Database(path)

    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("operation", "parameters", "message"),
    [
        ("DeleteTable", {}, f"{UNKNOWN} the operation DeleteTable{HERE}"),
        (
            "Query",
            {"ScanIndexForward": False},
            f"{UNKNOWN} the parameter ScanIndexForward of Query{HERE}",
        ),
        (
            "Query",
            {"IndexName": "by-status", "ConsistentRead": True},
            "Consistent reads are not supported on global indexes",
        ),
        (
            "Query",
            {"KeyConditionExpression": "id = :one", **ONE},
            "Query condition missed key schema element: ['pk', 'id']",
        ),
        (
            "UpdateItem",
            {"Key": COUNTER, "UpdateExpression": "SET status = :one", **ONE},
            "Attribute name is a reserved keyword; reserved keyword: status",
        ),
        (
            "UpdateItem",
            {"Key": COUNTER, "UpdateExpression": "REMOVE n"},
            f"{UNKNOWN} the update REMOVE n{HERE}",
        ),
        (
            "DeleteItem",
            {"Key": COUNTER, "ConditionExpression": "n < :one", **ONE},
            f"{UNKNOWN} the condition 'n < :one'{HERE}",
        ),
        (
            "DeleteItem",
            {"Key": COUNTER, "ConditionExpression": "id <= :one AND id = :one", **ONE},
            "The conditional request failed",
        ),
        (
            "DeleteItem",
            {"Key": COUNTER, "ConditionExpression": "attribute_exists(nothing)"},
            "The conditional request failed",
        ),
        (
            "DeleteItem",
            {"Key": COUNTER, **ONE},
            "Names and values must be those that {} use",
        ),
        (
            "DeleteItem",
            {"Key": COUNTER, "ReturnValues": "ALL_OLD"},
            f"{UNKNOWN} the value ALL_OLD of ReturnValues{HERE}",
        ),
    ],
)
def test_refused_request_is_explained_and_changes_nothing(
    operation: str, parameters: dict[str, Any], message: str
) -> None:
    before = items()

    assert ask(operation, ANIMALS, **parameters)["message"] == message
    assert items() == before


def put_new(partition: str) -> dict[str, Any]:
    """Make the part of a transaction that adds an item."""
    item = COUNTER | {"pk": {"S": partition}}
    condition = "attribute_not_exists(pk)"
    put = {"TableName": ANIMALS, "Item": item, "ConditionExpression": condition}
    return {"Put": put}


def test_cancelled_transaction_writes_nothing() -> None:
    response = ask(
        "TransactWriteItems",
        ANIMALS,
        ClientRequestToken="1",
        TransactItems=[put_new("new"), put_new("counter")],
    )

    reasons = [{"Code": "None"}, {"Code": "ConditionalCheckFailed"}]
    assert response["CancellationReasons"] == reasons
    assert items("new") == []


def test_transaction_with_the_same_token_is_not_repeated() -> None:
    transaction: Any = {"ClientRequestToken": "1", "TransactItems": [put_new("new")]}

    for _ in range(2):
        assert ask("TransactWriteItems", ANIMALS, **transaction) == {}


def test_page_of_an_index_is_ordered_and_ends_with_a_key() -> None:
    for partition, number in [("other", "10"), ("pet", "-3"), ("pet", "-30")]:
        key = {"pk": {"S": partition}, "id": {"N": number}}
        item = key | {"status": {"S": "new"}}
        ask("PutItem", ANIMALS, Item=item)

    page = ask(
        "Query",
        ANIMALS,
        IndexName="by-status",
        KeyConditionExpression="#status = :new",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":new": {"S": "new"}},
        Limit=2,
    )

    assert [item["id"]["N"] for item in page["Items"]] == ["-30", "-3"]
    assert page["LastEvaluatedKey"] == item | {"id": {"N": "-3"}}
