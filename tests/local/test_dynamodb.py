"""The local store where Amazon's engine is no measure: kills, damaged files, many writers, and what it refuses."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import pytest_socket
from botocore.config import Config
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from tools import ROOT
from tools.local.dynamodb import Database, DatabaseError
from tools.local.values import order

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

NAME = "Animals"
TABLE: Any = {
    "TableName": NAME,
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "id", "AttributeType": "N"},
    ],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "id", "KeyType": "RANGE"}],
}
COUNTER: Any = {"pk": {"S": "counter"}, "id": {"N": "0"}}


@pytest.fixture(autouse=True)
def no_network() -> Iterator[None]:
    pytest_socket.disable_socket()
    yield
    pytest_socket.enable_socket()


def open_store(path: Path) -> tuple[Database, "DynamoDBClient"]:
    config = Config(retries={"total_max_attempts": 1})
    client = boto3.client("dynamodb", "eu-central-1", aws_access_key_id="x", aws_secret_access_key="x", config=config)
    database = Database(path)
    database.attach(client)
    return database, client


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def client(path: Path) -> Iterator["DynamoDBClient"]:
    database, client = open_store(path)
    client.create_table(**TABLE)
    yield client
    database.close()


def pet(id_: int | str, **attributes: Any) -> Any:
    return {"pk": {"S": "pet"}, "id": {"N": str(id_)}, **attributes}


def put(client: "DynamoDBClient", *items: Any) -> None:
    for item in items:
        client.put_item(TableName=NAME, Item=item)


def stored(client: "DynamoDBClient", partition: str) -> list[Any]:
    pages = client.get_paginator("scan").paginate(TableName=NAME)
    return [item for page in pages for item in page["Items"] if item["pk"]["S"].startswith(partition)]


def test_kills_lose_nothing_that_was_answered_and_double_nothing(path: Path, client: "DynamoDBClient") -> None:
    variables = (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "POWERTOOLS_SERVICE_NAME",
        "POWERTOOLS_METRICS_NAMESPACE",
    )
    environment = os.environ | dict.fromkeys((*variables, "STAGE", "API_KEYS_TABLE"), "test")
    environment |= {"PYTHONPATH": "layers/common", "AWS_DEFAULT_REGION": "eu-central-1", "ANIMALS_TABLE": NAME}
    ids: dict[str, str] = {}
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-m", "tests.local.creators", str(path)], cwd=ROOT, env=environment, stdout=subprocess.PIPE
        ) as creators:
            assert creators.stdout
            answered = [creators.stdout.readline() for _ in range(len(ids) + 100)]
            time.sleep(random.uniform(0, 0.1))
            creators.kill()
            answered += creators.stdout.readlines()
        for line in answered:
            key, id_ = line.decode().split()
            assert ids.setdefault(key, id_) == id_

    animals = {item["name"]["S"]: item["id"]["N"] for item in stored(client, "pet")}

    assert len(animals) == len(stored(client, "pet")) == len(stored(client, "idempotency#"))
    assert ids.items() <= animals.items()


def test_writers_in_threads_and_processes_do_not_overwrite_each_other(path: Path, client: "DynamoDBClient") -> None:
    # Another `Database` shares with this one what another process does: the file alone.
    database, other = open_store(path)

    def count_on(number: int) -> str:
        add: Any = {"UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
        writer = (client, other)[number % 2]
        return writer.update_item(TableName=NAME, Key=COUNTER, ReturnValues="UPDATED_NEW", **add)["Attributes"]["n"][
            "N"
        ]

    with ThreadPoolExecutor(16) as threads:
        numbers = list(threads.map(count_on, range(400)))
    database.close()

    assert sorted(map(int, numbers)) == list(range(1, 401))


def foreign(_: bytes) -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE mine (x)")
    content = connection.serialize()
    connection.close()
    return content


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut in the header": lambda content: content[:50],
    "cut in half": lambda content: content[: len(content) // 2],
    "cut at the end": lambda content: content[:-1000],
    "noise": lambda content: random.randbytes(len(content)),
    "noise inside": lambda content: content[:8192] + random.randbytes(8192) + content[16384:],
    "newer": lambda content: content[:60] + b"\0\0\0\2" + content[64:],
    "foreign": foreign,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_refused_and_left_as_it_is(path: Path, damage: str) -> None:
    database, client = open_store(path)
    client.create_table(**TABLE)
    put(client, *(pet(number, name={"S": "x" * 1000}) for number in range(30)))
    database.close()
    damaged = DAMAGES[damage](path.read_bytes())
    path.write_bytes(damaged)

    with pytest.raises(DatabaseError, match=f"{path} is not a local store"):
        Database(path)

    assert path.read_bytes() == damaged


def test_file_cut_off_after_a_kill_is_refused_and_left_as_it_is(path: Path, client: "DynamoDBClient") -> None:
    # SQLite moves what was written from the log into the file when that has 1,000 pages.
    for number in range(15):
        put(client, pet(number, name={"S": "x" * 300_000}))
    killed = path.with_name("killed.sqlite")
    shutil.copy(f"{path}-wal", f"{killed}-wal")
    damaged = path.read_bytes()[:100_000]
    killed.write_bytes(damaged)

    with pytest.raises(DatabaseError, match=f"{killed} is not a local store"):
        Database(killed)

    assert killed.read_bytes() == damaged


def test_log_without_its_file_is_not_given_to_a_new_store(path: Path) -> None:
    log = Path(f"{path}-wal")
    log.write_bytes(b"log")

    with pytest.raises(DatabaseError, match=f"{log} is a part of"):
        Database(path)

    assert log.read_bytes() == b"log"
    assert not path.exists()


def test_store_that_is_taken_away_does_not_come_back_empty(path: Path) -> None:
    database, client = open_store(path)
    path.unlink()

    with pytest.raises(ClientError, match=rf"InternalServerError.*{path}"):
        client.describe_table(TableName=NAME)
    database.close()

    assert not path.exists()


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "DeleteTable": ("delete_table", {}),
    "FilterExpression": ("scan", {"FilterExpression": "n = m"}),
    "ProjectionExpression": ("get_item", {"Key": pet(1), "ProjectionExpression": "n"}),
    "ReturnConsumedCapacity": ("put_item", {"Item": pet(1), "ReturnConsumedCapacity": "TOTAL"}),
    "NS": ("put_item", {"Item": pet(1, n={"NS": ["1"]})}),
    "size": ("put_item", {"Item": pet(1), "ConditionExpression": "size(n) = m"}),
    "BETWEEN": ("put_item", {"Item": pet(1), "ConditionExpression": "id BETWEEN n AND m"}),
    "n . m": ("put_item", {"Item": pet(1), "ConditionExpression": "attribute_exists(n.m)"}),
    "list_append": ("update_item", {"Key": pet(1), "UpdateExpression": "SET n = list_append(n, m)"}),
    "DELETE": ("update_item", {"Key": pet(1), "UpdateExpression": "DELETE n m"}),
}


@pytest.mark.parametrize("named", REFUSED)
def test_what_the_store_does_not_know_is_refused_by_name(client: "DynamoDBClient", named: str) -> None:
    operation, parameters = REFUSED[named]

    with pytest.raises(ClientError, match=f"(?i)embedded store.*{named}"):
        getattr(client, operation)(TableName=NAME, **parameters)

    assert stored(client, "") == []


def test_token_is_remembered_for_ten_minutes(client: "DynamoDBClient", monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    add: Any = {"UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
    update: Any = {"Update": {"TableName": NAME, "Key": COUNTER, **add}}
    for later in (0, 1, 599, 601):
        monkeypatch.setattr(time, "time", lambda later=later: now + later)
        client.transact_write_items(TransactItems=[update], ClientRequestToken="token")

    assert stored(client, "counter") == [{**COUNTER, "n": {"N": "2"}}]


def test_attribute_of_expiry_is_described_and_deletes_nothing_by_itself(client: "DynamoDBClient") -> None:
    expiry: Any = {"AttributeName": "expires", "Enabled": True}
    client.update_time_to_live(TableName=NAME, TimeToLiveSpecification=expiry)
    put(client, pet(1, expires={"N": "1"}))

    described = client.describe_time_to_live(TableName=NAME)["TimeToLiveDescription"]

    assert described == {"AttributeName": "expires", "TimeToLiveStatus": "ENABLED"}
    assert len(stored(client, "pet")) == 1


def test_pages_end_at_a_megabyte_and_items_at_400_kilobytes(client: "DynamoDBClient") -> None:
    put(client, *(pet(number, name={"S": "x" * 300_000}) for number in range(10)))

    pages = list(client.get_paginator("scan").paginate(TableName=NAME))

    assert [len(page["Items"]) for page in pages] == [4, 4, 2]
    with pytest.raises(ClientError, match="Item size"):
        put(client, pet(11, name={"S": "x" * 410_000}))


@pytest.mark.parametrize(
    ("sent", "kept"), [("1.50", "1.5"), ("1e3", "1000"), ("-0.0", "0"), ("+007", "7"), ("1e-3", "0.001")]
)
def test_numbers_are_returned_as_dynamodb_writes_them(client: "DynamoDBClient", sent: str, kept: str) -> None:
    put(client, pet(1, n={"N": sent}))

    assert stored(client, "pet")[0]["n"] == {"N": kept}


DIGITS = st.integers(-(10**38) + 1, 10**38 - 1)
NUMBERS = st.builds(lambda digits, exponent: Decimal(f"{digits}e{exponent}"), DIGITS, st.integers(-92, 88))


@given(st.lists(NUMBERS | st.integers(-20, 20).map(Decimal), min_size=2))
def test_numbers_are_in_order(numbers: list[Decimal]) -> None:
    assert sorted(numbers) == sorted(numbers, key=lambda number: order({"N": str(number)}))
