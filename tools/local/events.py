"""What the files in `events/` rely on: their API key, five animals, a repeated creation."""

import io
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any

from animal_store import api_key

from tools import ROOT
from tools.key_table import KeyRecord, KeyTable
from tools.local.gateway import Gateway

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

EXAMPLE_KEY = "animal_test_AnExampleKeyThatOpensNothingHere0u1vgN"
"""It opens only a local store, while a command runs that was given an event with it."""

PETS: list[dict[str, Any]] = [
    {"id": 1, "name": "Rex", "categoryId": 3, "status": "available"},
    {"id": 2, "name": "Mia", "categoryId": 1},
    {"id": 3, "name": "Bo", "categoryId": 3, "status": "sold"},
    {"id": 4, "name": "Kira", "categoryId": 9223372036854775807, "status": "available"},
    {"id": 5, "name": "Otto", "categoryId": 2, "status": "pending"},
]


def add_pets(dynamodb: "DynamoDBClient", table: str) -> None:
    """Add the animals to a store that has none; a store with a counter keeps its own."""
    counter = {"pk": "counter", "id": 0, "value": len(PETS)}
    new = "attribute_not_exists(pk)"
    with suppress(dynamodb.exceptions.ConditionalCheckFailedException):
        for item in [counter, *({"pk": "pet"} | pet for pet in PETS)]:
            typed: Any = {
                name: {"S" if isinstance(value, str) else "N": str(value)}
                for name, value in item.items()
            }
            dynamodb.put_item(TableName=table, Item=typed, ConditionExpression=new)


def remove_key(keys: KeyTable) -> None:
    """Let the example key open nothing any more."""
    digest = api_key.digest(EXAMPLE_KEY)
    keys.dynamodb.delete_item(TableName=keys.name, Key={"hash": {"S": digest}})


@contextmanager
def prepared(
    event: object, gateway: Gateway, dynamodb: "DynamoDBClient"
) -> Iterator[None]:
    """Prepare a local store: each file in `events/` gets the response that its name promises.

    The example key is valid until the end, or until that of another command that added it before.
    For an event without the example key, nothing is added.
    """
    tables, digest = gateway.template.tables, api_key.digest(EXAMPLE_KEY)
    keys = KeyTable(dynamodb, tables["ApiKeysTable"].name)
    if EXAMPLE_KEY not in json.dumps(event):
        yield
        return
    is_added = keys.get(digest) is None
    if is_added:
        keys.put(KeyRecord(digest, "events", int(time.time()), issuedBy=keys.who()))
    try:
        add_pets(dynamodb, tables["AnimalsTable"].name)
        # create-422.json sends another animal under the Idempotency-Key of this one.
        path = ROOT / "events/create-201-idempotency-key.json"
        first = json.loads(path.read_text("utf-8"))
        with redirect_stdout(io.StringIO()):
            gateway.invoke(gateway.template.function_of(first), first, seconds=10)
        yield
    finally:
        if is_added:
            remove_key(keys)
