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


class Store(Database):
    """A store that is asked without the SDK."""

    def ask(self, operation: str, **parameters: Any) -> Any:
        table = {} if operation == "TransactWriteItems" else {"TableName": "Notes"}
        request: Any = SimpleNamespace(url="", body=json.dumps(table | parameters))
        return json.loads(self.answer(f"before-send.dynamodb.{operation}", request).text)

    def count(self) -> int:
        """Count on, and return the number."""
        one = {"UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
        counted = self.ask("UpdateItem", Key=COUNTER, ReturnValues="ALL_NEW", **one)
        return int(counted["Attributes"]["n"]["N"])


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
    assert store.ask("UpdateItem", Key=COUNTER)["message"].endswith("start the service again")
    moved.rename(store._path)

    assert store.ask("Scan")["message"].endswith("start the service again")


def test_log_of_a_missing_file_does_not_meet_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "store-wal").write_bytes(b"log")

    with pytest.raises(LocalError, match=r"it is missing, but its log is there: .*-wal\."):
        Database(tmp_path / "store")

    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("operation", "parameters", "named"),
    [
        ("DeleteTable", {}, "DeleteTable"),
        ("Scan", {"FilterExpression": "n = m"}, "FilterExpression"),
        ("UpdateItem", {"Key": COUNTER, "ReturnValues": "ALL_OLD"}, "ReturnValues"),
        ("TransactWriteItems", {"TransactItems": [{"Get": {"Key": COUNTER}}]}, "Get"),
        ("PutItem", {"Item": {**COUNTER, "n": {"N": "1.5"}}}, "1.5"),
        ("PutItem", {"Item": COUNTER, "ConditionExpression": "size(n)"}, "size(n)"),
        ("UpdateItem", {"Key": COUNTER, "UpdateExpression": "REMOVE n"}, "REMOVE"),
    ],
)
def test_what_the_store_does_not_know_is_refused_by_name(
    store: Store, operation: str, parameters: dict[str, Any], named: str
) -> None:
    message = store.ask(operation, **parameters)["message"]

    assert "embedded store does not know" in message
    assert named in message
    assert store.ask("Scan")["Count"] == 0


def new_item(partition: str) -> dict[str, Any]:
    """Make the part of a transaction that adds an item."""
    item = COUNTER | {"pk": {"S": partition}}
    condition = "attribute_not_exists(pk)"
    return {"Put": {"TableName": "Notes", "Item": item, "ConditionExpression": condition}}


def test_transaction_is_all_or_nothing(store: Store) -> None:
    store.ask("TransactWriteItems", TransactItems=[new_item("b")])

    answer = store.ask("TransactWriteItems", TransactItems=[new_item("a"), new_item("b")])

    assert [each["Code"] for each in answer["CancellationReasons"]] == [
        "None",
        "ConditionalCheckFailed",
    ]
    assert store.ask("Scan")["Count"] == 1


def test_transaction_writes_an_item_once(store: Store) -> None:
    answer = store.ask("TransactWriteItems", TransactItems=[new_item("a"), new_item("a")])

    assert "multiple operations" in answer["message"]


def test_token_belongs_to_one_transaction(store: Store) -> None:
    store.ask("TransactWriteItems", TransactItems=[new_item("a")], ClientRequestToken="token")

    answer = store.ask(
        "TransactWriteItems", TransactItems=[new_item("b")], ClientRequestToken="token"
    )

    assert "token belongs to another transaction" in answer["message"]


def test_pages_of_a_query_do_not_overlap(store: Store) -> None:
    for number in "123":
        store.ask("PutItem", Item={**COUNTER, "id": {"N": number}})
    query = {
        "KeyConditionExpression": "pk = :pk AND id > :id",
        "ExpressionAttributeValues": {":pk": COUNTER["pk"], ":id": {"N": "1"}},
    }

    first = store.ask("Query", Limit=1, **query)
    rest = store.ask("Query", ExclusiveStartKey=first["LastEvaluatedKey"], **query)

    assert [item["id"]["N"] for item in first["Items"] + rest["Items"]] == ["2", "3"]


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("id <= :zero AND n > :zero", ""),
        ("n = :zero OR n > :zero OR n < :zero", ""),
        ("id > :zero", "ConditionalCheckFailed"),
        ("id = :zero AND n = :zero", "ConditionalCheckFailed"),
    ],
)
def test_condition_decides_whether_an_item_is_deleted(
    store: Store, condition: str, code: str
) -> None:
    store.count()
    values = {":zero": {"N": "0"}}

    answer = store.ask(
        "DeleteItem", Key=COUNTER, ConditionExpression=condition, ExpressionAttributeValues=values
    )

    assert code in answer.get("__type", "")
    assert store.ask("Scan")["Count"] == bool(code)


@pytest.mark.parametrize(("seconds", "is_repeated"), [(599, True), (601, False)])
def test_token_of_a_transaction_lasts_ten_minutes(
    store: Store, monkeypatch: pytest.MonkeyPatch, seconds: int, is_repeated: bool
) -> None:
    transaction: Any = {"TransactItems": [new_item("a")], "ClientRequestToken": "token"}
    store.ask("TransactWriteItems", **transaction)
    later = time.time() + seconds
    monkeypatch.setattr(time, "time", lambda: later)

    answer = store.ask("TransactWriteItems", **transaction)

    assert (answer == {}) is is_repeated
