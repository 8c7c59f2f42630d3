"""The local store: its file, many writers, what it answers and what it refuses."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tools.local import LocalError
from tools.local.service import load_template
from tools.local.store import Database

COUNTER: Any = {"pk": {"S": "counter"}, "id": {"N": "0"}}
TABLE = load_template().tables["AnimalsTable"]
ONE = {"ExpressionAttributeValues": {":one": {"N": "1"}}}


class Store(Database):
    """A store with a table, which is asked without the SDK."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ask("CreateTable", **TABLE.request)  # if there is none

    def ask(self, operation: str, **parameters: Any) -> Any:
        table = {} if "Items" in operation else {"TableName": TABLE.name}
        request: Any = SimpleNamespace(url="", body=json.dumps(table | parameters))
        answer = self.answer(f"before-send.dynamodb.{operation}", request)
        return json.loads(answer.text)

    def count(self) -> int:
        """Add 1 to the counter's number, and return it."""
        update = {"Key": COUNTER, "UpdateExpression": "ADD n :one", **ONE}
        answer = self.ask("UpdateItem", ReturnValues="UPDATED_NEW", **update)
        return int(answer["Attributes"]["n"]["N"])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "store")) as store:
        yield store


def test_writers_do_not_overwrite_each_other(tmp_path: Path) -> None:
    # Two stores share what processes do: the file alone.
    paths = [tmp_path / "new/folder/store"] * 2
    with ThreadPoolExecutor(16) as threads:
        stores = [*threads.map(Store, paths)]
        numbers = threads.map(Store.count, stores * 50)
    for store in stores:
        store.close()

    assert sorted(numbers) == list(range(1, 101))


def test_unfinished_store_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "store.new").write_text("half")

    with closing(Store(tmp_path / "store")) as store:
        assert store.count() == 1


def test_writers_wait_for_the_disk(store: Store) -> None:
    store.count()

    assert store._idle[0].execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._idle[0].execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize(
    ("position", "noise"),
    [(8192, bytes(8192)), (60, b"\0\0\0\1")],
    ids=["damaged", "of an older version"],
)
def test_file_that_is_no_store_is_refused_and_left_as_it_is(
    tmp_path: Path, store: Store, position: int, noise: bytes
) -> None:
    store.close()
    content = (tmp_path / "store").read_bytes()
    damaged = content[:position] + noise + content[position + len(noise) :]
    (tmp_path / "damaged").write_bytes(damaged)

    with pytest.raises(LocalError, match=r"(?s)damaged cannot be used: .*make reset"):
        Database(tmp_path / "damaged")

    assert (tmp_path / "damaged").read_bytes() == damaged


def test_table_that_lacks_an_index_is_refused_with_advice(store: Store) -> None:
    answer = store.ask("CreateTable", **TABLE.request | {"GlobalSecondaryIndexes": []})

    assert answer["message"].endswith("/ has other keys or indexes: make reset")


def new_item(partition: str) -> dict[str, Any]:
    """Make the part of a transaction that adds an item."""
    item = COUNTER | {"pk": {"S": partition}}
    condition = "attribute_not_exists(pk)"
    return {
        "Put": {
            "TableName": TABLE.name,
            "Item": item,
            "ConditionExpression": condition,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


KEY_ID = {"KeyConditionExpression": "id = :one", **ONE}


@pytest.mark.parametrize(
    ("operation", "parameters", "message"),
    [
        ("DeleteTable", {}, "does not know the operation DeleteTable"),
        ("Scan", {"FilterExpression": "n = m"}, "parameter FilterExpression of Scan"),
        ("Query", {"IndexName": "by-status", "ConsistentRead": True}, "Consistent"),
        ("Query", KEY_ID, "Query condition missed key schema element"),
        ("PutItem", {"Item": COUNTER | {"n": {"N": "1.5"}}}, "value {'N': '1.5'} of n"),
        ("PutItem", {"Item": COUNTER | {"status": {"S": ""}}}, "that is not empty"),
        (
            "UpdateItem",
            {"UpdateExpression": "SET status = :one", **ONE},
            "keyword: sta",
        ),
        ("UpdateItem", {"UpdateExpression": "SET id = :one", **ONE}, "part of the key"),
        ("UpdateItem", {"UpdateExpression": "ADD t :one", **ONE}, "this update of"),
        (
            "DeleteItem",
            {"ConditionExpression": "contains(n, :one)", **ONE},
            "'contains(n",
        ),
        ("DeleteItem", ONE, "must be those that {} use"),
        ("UpdateItem", {"ReturnValues": "ALL_OLD"}, "ReturnValues of"),
        (
            "TransactWriteItems",
            {"TransactItems": [new_item("a"), new_item("counter")]},
            "'None'}, {'Code': 'ConditionalCheckFailed', 'Item': {'pk'",
        ),
    ],
)
def test_refused_request_is_explained_and_changes_nothing(
    store: Store, operation: str, parameters: dict[str, Any], message: str
) -> None:
    item = COUNTER | {"n": {"N": "1"}, "t": {"S": ""}}
    store.ask("PutItem", Item=item)
    key = {"Key": COUNTER} if operation in {"UpdateItem", "DeleteItem"} else {}

    assert message in str(store.ask(operation, **key, **parameters))
    assert store.ask("Scan")["Items"] == [item]


def test_index_follows_its_table(store: Store) -> None:
    for number in ("-3", "0", "10", "-30", "-31"):
        item = COUNTER | {"id": {"N": number}, "status": {"S": "open"}}
        store.ask("PutItem", Item=item)
    store.ask("PutItem", Item=item | {"id": {"N": "0"}, "status": {"S": "done"}})

    answer = store.ask(
        "Query",
        IndexName="by-status",
        KeyConditionExpression="#status = :status AND id > :id",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":status": {"S": "open"}, ":id": {"N": "-31"}},
        Limit=2,
    )

    assert [item["id"]["N"] for item in answer["Items"]] == ["-30", "-3"]
    assert answer["LastEvaluatedKey"]["id"] == {"N": "-3"}


def test_update_whose_condition_holds(store: Store) -> None:
    item = COUNTER | {"one": {"N": "1"}, "two": {"N": "2"}}
    store.ask("PutItem", Item=item)

    assert store.ask(
        "UpdateItem",
        Key=COUNTER,
        ConditionExpression="two <= :one OR one <= :one AND one = :one "
        "AND attribute_exists(one)",
        UpdateExpression="SET two = if_not_exists(two, :one), "
        "six = if_not_exists(six, :one)",
        ReturnValues="ALL_NEW",
        **ONE,
    ) == {"Attributes": item | {"six": {"N": "1"}}}


@pytest.mark.parametrize(
    ("partition", "seconds", "answer"),
    [
        ("a", 599, "{}"),
        ("b", 0, "#IdempotentParameterMismatchException"),
        ("a", 601, "#TransactionCanceledException"),
    ],
)
def test_token_belongs_to_one_transaction_for_ten_minutes(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    partition: str,
    seconds: int,
    answer: str,
) -> None:
    def write(partition: str) -> str:
        transaction = {"TransactItems": [new_item(partition)]}
        return str(
            store.ask("TransactWriteItems", ClientRequestToken="1", **transaction)
        )

    write("a")
    later = time.time() + seconds
    monkeypatch.setattr(time, "time", lambda: later)

    assert answer in write(partition)
