"""What the files of `events/` are about: their API key, five animals, a repeated creation."""

import io
import json
import time
from contextlib import redirect_stdout, suppress
from typing import TYPE_CHECKING, Any

from animal_store import api_key

from tools import ROOT
from tools.key_table import KeyRecord, KeyTable

if TYPE_CHECKING:
    from lambda_local.gateway import Gateway
    from types_boto3_dynamodb import DynamoDBClient

EXAMPLE_KEY = "animal_test_AnExampleKeyThatOpensNothingHere0u1vgN"
"""Nobody has issued it: it opens only local stores that have been prepared for the events."""

PETS: list[dict[str, Any]] = [
    {"id": 1, "name": "Rex", "categoryId": 3, "status": "available"},
    {"id": 2, "name": "Mia", "categoryId": 1},
    {"id": 3, "name": "Bo", "categoryId": 3, "status": "sold"},
    {"id": 4, "name": "Kira", "categoryId": 9223372036854775807, "status": "available"},
    {"id": 5, "name": "Otto", "categoryId": 2, "status": "pending"},
]


def add_pets(dynamodb: "DynamoDBClient", table: str) -> None:
    """Add the animals to a store that has none; a store with a counter keeps its own."""
    items = [
        {"pk": "counter", "id": 0, "value": len(PETS)},
        *({"pk": "pet"} | pet for pet in PETS),
    ]
    with suppress(dynamodb.exceptions.ConditionalCheckFailedException):
        for item in items:
            typed: Any = {
                name: {"S" if isinstance(value, str) else "N": str(value)}
                for name, value in item.items()
            }
            new = "attribute_not_exists(pk)"
            dynamodb.put_item(TableName=table, Item=typed, ConditionExpression=new)


def prepare_for(event: object, gateway: "Gateway", dynamodb: "DynamoDBClient") -> None:
    """Prepare a local store if an event has the events' key."""
    if EXAMPLE_KEY in json.dumps(event):
        prepare(gateway, dynamodb)


def prepare(gateway: "Gateway", dynamodb: "DynamoDBClient") -> None:
    """Let a local store give each file of `events/` the response that its name promises."""
    tables = gateway.template.tables
    keys, digest = (
        KeyTable(dynamodb, tables["ApiKeysTable"].name),
        api_key.digest(EXAMPLE_KEY),
    )
    if keys.get(digest) is None:
        keys.put(KeyRecord(digest, "events", int(time.time()), issuedBy=keys.who()))
    add_pets(dynamodb, tables["AnimalsTable"].name)
    # create-422.json sends another animal under the Idempotency-Key of this one.
    first = json.loads(
        (ROOT / "events/create-201-idempotency-key.json").read_text("utf-8")
    )
    with redirect_stdout(io.StringIO()):
        gateway.invoke(gateway.template.function_of(first), first, seconds=10)
