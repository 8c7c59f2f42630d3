"""The local store where Amazon's engine is no measure: files, many writers, and refusals."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from lambda_local import LocalError
from lambda_local.dynamodb import Database

COUNTER: Any = {"pk": {"S": "counter"}, "id": {"N": "0"}}
NOTES: Any = yaml.safe_load(Path(__file__).with_name("notes.yaml").read_text("utf-8"))
ONE = {"ExpressionAttributeValues": {":one": {"N": "1"}}}


class Store(Database):
    """A store that is asked without the SDK."""

    def ask(self, operation: str, **parameters: Any) -> Any:
        table = {} if operation == "TransactWriteItems" else {"TableName": "Notes"}
        request: Any = SimpleNamespace(url="", body=json.dumps(table | parameters))
        return json.loads(
            self.answer(f"before-send.dynamodb.{operation}", request).text
        )

    def count(self) -> int:
        """Add 1 to the counter's number, and return it."""
        update = {"Key": COUNTER, "UpdateExpression": "ADD n :one", **ONE}
        answer = self.ask("UpdateItem", ReturnValues="UPDATED_NEW", **update)
        return int(answer["Attributes"]["n"]["N"])


def make_file(path: Path) -> None:
    """Make the file of a store with an empty table."""
    with closing(Store(path)) as store:
        store.ask("CreateTable", **NOTES)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    make_file(tmp_path / "store")
    with closing(Store(tmp_path / "store")) as store:
        yield store


def test_writers_do_not_overwrite_each_other(store: Store) -> None:
    # Another store shares with this one what another process does: the file alone.
    with closing(Store(store._path)) as other, ThreadPoolExecutor(16) as threads:
        numbers = threads.map(lambda each: each.count(), [store, other] * 50)

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
    ids=["overwritten", "of a newer version", "of another program", "cut off"],
)
def test_damaged_file_is_refused_and_left_as_it_is(
    tmp_path: Path, store: Store, position: int, noise: bytes
) -> None:
    content = store._path.read_bytes()
    damaged = content[:position] + noise + content[position + len(noise) :]
    (tmp_path / "damaged").write_bytes(damaged)

    with pytest.raises(LocalError, match=r"damaged is not a local store .*\nAsk Ann\."):
        Database(tmp_path / "damaged", "Ask Ann.")

    assert (tmp_path / "damaged").read_bytes() == damaged


@pytest.mark.parametrize("is_asked", [True, False], ids=["asked", "closed at once"])
def test_file_that_is_replaced_is_not_used_any_more(
    tmp_path: Path, store: Store, is_asked: bool
) -> None:
    store.count()
    moved = store._path.rename(tmp_path / "moved")
    make_file(tmp_path / "new")
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
    store.ask("Scan")
    moved.rename(store._path)

    assert store.ask("Scan")["message"].endswith("start the service again")


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
        "Put": {"TableName": "Notes", "Item": item, "ConditionExpression": condition}
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
        ("PutItem", {"Item": COUNTER | {"n": {"L": [{"SS": []}]}}}, "of n[0]"),
        ("PutItem", {"Item": COUNTER | {"pk": {"S": 2049 * "x"}}}, "1 to 2048 bytes"),
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
            "Transaction cancelled: ['None', 'ConditionalCheckFailed']",
        ),
    ],
)
def test_refused_request_is_explained_and_changes_nothing(
    store: Store, operation: str, parameters: dict[str, Any], message: str
) -> None:
    store.count()

    assert message in store.ask(operation, **parameters)["message"]
    assert store.ask("Scan")["Items"] == [COUNTER | {"n": {"N": "1"}}]


def test_index_follows_its_table(store: Store) -> None:
    for status in ("new", "open", "done"):
        store.ask("PutItem", Item=COUNTER | {"status": {"S": status}})
    # A stale row would be found as well.
    query: Any = {
        "IndexName": "by-status",
        "KeyConditionExpression": "#status = :status",
    }
    query["ExpressionAttributeNames"] = {"#status": "status"}
    counts = []
    for status in ("open", "done"):
        values = {":status": {"S": status}}
        answer = store.ask("Query", ExpressionAttributeValues=values, **query)
        counts.append(answer["Count"])

    assert counts == [0, 1]


@pytest.mark.parametrize(
    ("partition", "seconds", "message"),
    [("a", 599, "{}"), ("b", 0, "another transaction"), ("a", 601, "cancelled")],
)
def test_token_belongs_to_one_transaction_for_ten_minutes(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    partition: str,
    seconds: int,
    message: str,
) -> None:
    def write(partition: str) -> str:
        items = [new_item(partition)]
        return str(
            store.ask("TransactWriteItems", TransactItems=items, ClientRequestToken="1")
        )

    write("a")
    later = time.time() + seconds
    monkeypatch.setattr(time, "time", lambda: later)

    assert message in write(partition)
