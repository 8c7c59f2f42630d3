"""The local store where Amazon's engine is no measure: files, many writers, and refusals."""

import json
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import Session

from tests.support.handlers import ANIMALS, copy_database
from tools.local import LocalError
from tools.local.dynamodb import Database

COUNTER: Any = {"pk": {"S": "counter"}, "id": {"N": "0"}}


class Store(Database):
    """A store that is asked without the SDK."""

    def ask(self, operation: str, **parameters: Any) -> Any:
        table = {} if operation == "TransactWriteItems" else {"TableName": ANIMALS}
        request: Any = SimpleNamespace(url="", body=json.dumps(table | parameters))
        return json.loads(self.answer(f"before-send.dynamodb.{operation}", request).text)

    def count(self) -> int:
        """Count on, and return the number."""
        one = {"UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
        return int(
            self.ask("UpdateItem", Key=COUNTER, ReturnValues="ALL_NEW", **one)["Attributes"]["n"][
                "N"
            ]
        )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    copy_database(tmp_path / "store.sqlite")
    with closing(Store(tmp_path / "store.sqlite")) as store:
        yield store


def test_writers_do_not_overwrite_each_other_and_wait_for_the_disk(store: Store) -> None:
    # Another store shares with this one what another process does: the file alone.
    with closing(Store(store._path)) as other, ThreadPoolExecutor(16) as threads:
        numbers = list(threads.map(lambda number: (store, other)[number % 2].count(), range(200)))

    assert sorted(numbers) == list(range(1, 201))
    settings = [
        store._idle[0].execute(f"PRAGMA {name}").fetchone()
        for name in ("synchronous", "journal_mode")
    ]
    assert settings == [(2,), ("wal",)]


def test_a_page_is_the_same_work_among_many_animals(store: Store) -> None:
    work = []
    values = {
        "ExpressionAttributeNames": {"#s": "status"},
        "ExpressionAttributeValues": {":s": {"S": "sold"}},
    }
    for ids in range(10), range(10, 300):
        for number in ids:
            store.ask(
                "PutItem",
                Item={"pk": {"S": "pet"}, "id": {"N": str(number)}, "status": {"S": "sold"}},
            )
        steps: list[None] = []
        store._idle[0].set_progress_handler(partial(steps.append, None), 1)
        store.ask(
            "Query", IndexName="by-status", KeyConditionExpression="#s = :s", Limit=5, **values
        )
        store._idle[0].set_progress_handler(None, 1)
        work.append(len(steps))

    assert work[1] == pytest.approx(work[0], rel=0.1)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut at the end": lambda content: content[:-1000],
    "noise inside": lambda content: content[:8192] + random.randbytes(8192) + content[16384:],
    "newer": lambda content: content[:60] + b"\0\0\0\2" + content[64:],
    "of another program": lambda content: content[:68] + b"mine" + content[72:],
    "cut after a kill": lambda content: content[:100_000],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_refused_and_left_as_it_is(
    tmp_path: Path, store: Store, damage: str
) -> None:
    for number in range(15):  # more than SQLite leaves in the log
        store.ask(
            "PutItem",
            Item={"pk": {"S": "pet"}, "id": {"N": str(number)}, "name": {"S": "x" * 300_000}},
        )
    damaged, log = tmp_path / "damaged", Path(f"{store._path}-wal").read_bytes()
    if damage.endswith("kill"):
        (tmp_path / "damaged-wal").write_bytes(log)
    else:
        store.close()
    content = DAMAGES[damage](store._path.read_bytes())
    damaged.write_bytes(content)

    with pytest.raises(LocalError, match=f"{damaged} is not a local store"):
        Database(damaged)

    assert damaged.read_bytes() == content


def test_closed_store_answers_with_an_error(store: Store) -> None:
    client: Any = Session().create_client("dynamodb")
    store.attach(client)
    assert client.describe_table(TableName=ANIMALS)["Table"]
    store.close()

    with pytest.raises(ClientError, match="it is closed"):
        client.describe_table(TableName=ANIMALS)


@pytest.mark.parametrize("is_asked", [True, False], ids=["asked", "closed at once"])
def test_file_that_is_replaced_is_not_used_any_more(
    tmp_path: Path, store: Store, is_asked: bool
) -> None:
    store.count()
    moved = store._path.rename(tmp_path / "moved")
    copy_database(store._path)

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
    (tmp_path / "store.sqlite-wal").write_bytes(b"log")

    with pytest.raises(LocalError, match=r"it is missing, but its log is there: .*-wal\."):
        Database(tmp_path / "store.sqlite")

    assert not (tmp_path / "store.sqlite").exists()


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "DeleteTable": ("DeleteTable", {}),
    "FilterExpression": ("Scan", {"FilterExpression": "n = m"}),
    "ReturnValues": (
        "UpdateItem",
        {"Key": COUNTER, "UpdateExpression": "SET n = m", "ReturnValues": "ALL_OLD"},
    ),
    "Get of TransactWriteItems": (
        "TransactWriteItems",
        {"TransactItems": [{"Get": {"Key": COUNTER}}]},
    ),
    "1.5": ("PutItem", {"Item": {**COUNTER, "n": {"N": "1.5"}}}),
    "AND": (
        "PutItem",
        {"Item": COUNTER, "ConditionExpression": "attribute_exists(n) AND attribute_exists(m)"},
    ),
    "list_append": (
        "UpdateItem",
        {"Key": COUNTER, "UpdateExpression": "SET n = list_append(n, m)"},
    ),
}


@pytest.mark.parametrize("named", REFUSED)
def test_what_the_store_does_not_know_is_refused_by_name(store: Store, named: str) -> None:
    operation, parameters = REFUSED[named]
    message = store.ask(operation, **parameters)["message"]

    assert "embedded store does not know" in message
    assert named in message
    assert store.ask("Scan")["Count"] == 0


def test_transaction_is_whole_and_its_token_lasts_ten_minutes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = {"ConditionExpression": "attribute_not_exists(pk)"}
    puts = [
        {"Put": {"TableName": ANIMALS, "Item": {**COUNTER, "pk": {"S": pk}}, **free}} for pk in "ab"
    ]
    now, codes = time.time(), []
    for later, sent in (0, puts[1:]), (599, puts[1:]), (601, puts):
        monkeypatch.setattr(time, "time", lambda later=later: now + later)
        answer = store.ask("TransactWriteItems", TransactItems=sent, ClientRequestToken="token")
        codes += [reason["Code"] for reason in answer.get("CancellationReasons", [])]

    assert codes == ["None", "ConditionalCheckFailed"]
    assert store.ask("Scan")["Items"] == [puts[1]["Put"]["Item"]]
    assert (
        "multiple operations"
        in store.ask("TransactWriteItems", TransactItems=puts[:1] * 2)["message"]
    )
