"""The local store where Amazon's engine is no measure: files, many writers, and refusals."""

import json
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tools.local import LocalError
from tools.local.store import Database

COUNTER: Any = {"pk": {"S": "counter"}, "id": {"N": "0"}}
ID = {"AttributeName": "id", "KeyType": "RANGE"}
NOTES: Any = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "id", "AttributeType": "N"},
        {"AttributeName": "status", "AttributeType": "S"},
    ],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, ID],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-status",
            "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}, ID],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}
ONE = {"ExpressionAttributeValues": {":one": {"N": "1"}}}


class Store(Database):
    """A store with a table, which is asked without the SDK."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ask("CreateTable", **NOTES)  # if there is none

    def ask(self, operation: str, **parameters: Any) -> Any:
        table = {} if operation == "TransactWriteItems" else {"TableName": "Notes"}
        request: Any = SimpleNamespace(url="", body=json.dumps(table | parameters))
        answer = self.answer(f"before-send.dynamodb.{operation}", request)
        assert answer.headers["x-amz-crc32"] == str(zlib.crc32(answer.content))
        assert answer.headers["x-amzn-requestid"]
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


def test_writers_wait_for_the_disk(store: Store) -> None:
    store.count()

    assert store._idle[0].execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._idle[0].execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize(
    ("position", "noise"),
    [
        (8192, bytes(8192)),
        (60, b"\0\0\0\2"),
        (68, b"mine"),
        (100_000, b"the end of a page that was cut off"),
    ],
)
def test_damaged_file_is_refused_and_left_as_it_is(
    tmp_path: Path, store: Store, position: int, noise: bytes
) -> None:
    store.close()
    content = store._path.read_bytes()
    damaged = content[:position] + noise + content[position + len(noise) :]
    (tmp_path / "damaged").write_bytes(damaged)

    with pytest.raises(LocalError, match=r"damaged is not a local store .*\nAsk Ann\."):
        Database(tmp_path / "damaged", "Ask Ann.")

    assert (tmp_path / "damaged").read_bytes() == damaged


@pytest.mark.parametrize("is_asked", [True, False])
def test_file_that_is_replaced_is_not_used_any_more(
    tmp_path: Path, store: Store, is_asked: bool
) -> None:
    store.count()
    moved = store._path.rename(tmp_path / "moved")
    Store(tmp_path / "new").close()
    (tmp_path / "new").rename(store._path)

    if is_asked:
        assert "removed or replaced" in store.ask("Scan")["message"]
        assert "removed or replaced" in store.ask("PutItem", Item=COUNTER)["message"]
    store.close()

    with closing(Store(moved)) as old, closing(Store(store._path)) as new:
        assert old.count() == 2  # what was acknowledged is in the file, not in its log
        assert new.count() == 1


def test_file_that_is_removed_stays_refused_when_it_comes_back(
    tmp_path: Path, store: Store
) -> None:
    store.count()
    moved = store._path.rename(tmp_path / "moved")
    answers = [store.ask("Scan"), store.ask("Scan")]
    moved.rename(store._path)
    answers.append(store.ask("Scan"))

    for answer in answers:
        assert answer["__type"].endswith("#InternalServerError")
        assert answer["message"].endswith("start the service again")


def test_log_of_a_missing_file_does_not_meet_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "store-wal").write_bytes(b"log")

    with pytest.raises(
        LocalError, match=r"it is missing, but its log is there: .*-wal\."
    ):
        Database(tmp_path / "store")

    assert not (tmp_path / "store").exists()


def new_item(partition: str) -> dict[str, Any]:
    """Make the part of a transaction that adds an item."""
    item = COUNTER | {"pk": {"S": partition}}
    condition = "attribute_not_exists(pk)"
    return {
        "Put": {
            "TableName": "Notes",
            "Item": item,
            "ConditionExpression": condition,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


@pytest.mark.parametrize(
    ("operation", "parameters", "message"),
    [
        ("DeleteTable", {}, "does not know the operation DeleteTable."),
        ("Scan", {"FilterExpression": "n = m"}, "parameter FilterExpression of Scan"),
        (
            "Query",
            {
                "KeyConditionExpression": "pk = :pk",
                "ExpressionAttributeValues": {":pk": {"S": "other"}},
                "ExclusiveStartKey": COUNTER,
            },
            "starting key is invalid, or outside the query",
        ),
        ("Query", {"IndexName": "x"}, "table does not have the specified index: x"),
        ("PutItem", {"Item": COUNTER | {"n": {"N": "1.5"}}}, "value {'N': '1.5'} of n"),
        (
            "PutItem",
            {"Item": COUNTER | {"n": {"L": [{"M": {"m": {"SS": []}}}]}}},
            "of m",
        ),
        (
            "UpdateItem",
            {"ReturnValues": "ALL_OLD"},
            "ReturnValues of UpdateItem, or its",
        ),
        (
            "UpdateItem",
            {"Key": COUNTER, "UpdateExpression": "REMOVE n"},
            "does not know the section 'REMOVE' of an update",
        ),
        (
            "UpdateItem",
            {"Key": COUNTER, "UpdateExpression": "SET status = :one", **ONE},
            "Attribute name is a reserved keyword; reserved keyword: status",
        ),
        (
            "UpdateItem",
            {"Key": COUNTER, "UpdateExpression": "SET id = :one", **ONE},
            "part of the key",
        ),
        (
            "DeleteItem",
            {"Key": COUNTER, "ConditionExpression": "n < :one OR n > :one", **ONE},
            "The conditional request failed",
        ),
        ("PutItem", {"Item": COUNTER | {"pk": {"S": 2049 * "x"}}}, "1 to 2048 bytes"),
        (
            "DeleteItem",
            {"Key": COUNTER, "ConditionExpression": "size(n) = :one", **ONE},
            "does not know the expression 'size(n) = :one'",
        ),
        (
            "DeleteItem",
            {"Key": COUNTER, **ONE},
            "expressions use []; defined are [':one']",
        ),
        ("TransactWriteItems", {"TransactItems": [{"Get": {}}]}, "parameter Get of"),
        (
            "TransactWriteItems",
            {"TransactItems": [new_item("a"), new_item("a")]},
            "Transaction request cannot include multiple operations on one item",
        ),
        (
            "TransactWriteItems",
            {"TransactItems": [new_item("a"), new_item("counter")]},
            (
                "Reasons': [{'Code': 'None'}, {'Code': 'ConditionalCheckFailed', "
                "'Message': 'The conditional request failed', 'Item': {'pk'"
            ),
        ),
        ("PutItem", new_item("counter")["Put"], "#ConditionalCheckFailedException"),
        ("CreateTable", NOTES, "#ResourceInUseException"),
    ],
)
def test_refused_request_is_explained_and_changes_nothing(
    store: Store, operation: str, parameters: dict[str, Any], message: str
) -> None:
    store.count()

    assert message in str(store.ask(operation, **parameters))
    assert store.ask("Scan")["Items"] == [COUNTER | {"n": {"N": "1"}}]


def test_index_follows_its_table_and_is_read_page_by_page(store: Store) -> None:
    for status in ("open", "done"):
        for number in ("-3", "0", "10", "-25", "2", "-30", "-250"):
            keys = {"id": {"N": number}, "status": {"S": status}}
            store.ask("PutItem", Item=COUNTER | keys)

    def read(status: str, **parameters: Any) -> list[str]:
        page = store.ask(
            "Query",
            IndexName="by-status",
            KeyConditionExpression="#status = :status AND id > :id",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":status": {"S": status}, ":id": {"N": "-250"}},
            **parameters,
        )
        ids = [item["id"]["N"] for item in page["Items"]]
        if "LastEvaluatedKey" in page:
            ids += read(
                status, **parameters | {"ExclusiveStartKey": page["LastEvaluatedKey"]}
            )
        return ids

    assert read("open") == []
    assert read("done") == ["-30", "-25", "-3", "0", "2", "10"]
    assert read("done", Limit=2) == read("done")
    assert read("done", Limit=2, ScanIndexForward=False) == read("done")[::-1]


def test_update_whose_condition_holds(store: Store) -> None:
    item = COUNTER | {"one": {"N": "1"}, "two": {"N": "2"}}
    store.ask("PutItem", Item=item)

    assert store.ask(
        "UpdateItem",
        Key=COUNTER,
        ConditionExpression="two < :one OR two > :one AND one <= :one "
        "AND one >= :one AND one = :one AND attribute_exists(one)",
        UpdateExpression="SET two = if_not_exists(two, :one), "
        "six = if_not_exists(six, :one)",
        ReturnValues="ALL_NEW",
        **ONE,
    ) == {"Attributes": item | {"six": {"N": "1"}}}


@pytest.mark.parametrize(
    ("partition", "seconds", "message"),
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
    message: str,
) -> None:
    def write(partition: str) -> str:
        return str(
            store.ask(
                "TransactWriteItems",
                TransactItems=[new_item(partition)],
                ClientRequestToken="1",
            )
        )

    write("a")
    later = time.time() + seconds
    monkeypatch.setattr(time, "time", lambda: later)

    assert message in write(partition)
