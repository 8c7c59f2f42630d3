"""The files in `events/`: what they rely on, and `animal-store invoke`, which takes one."""

import io
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from http import HTTPStatus
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from animal_store import api_key
from boto3.dynamodb.types import TypeSerializer

from tools import ROOT
from tools.key_table import KeyRecord, KeyTable
from tools.local.folder import DataFolder
from tools.local.gateway import Gateway
from tools.local.service import KEY_TABLE, Store, examples, load_template, open_store

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

EXAMPLE_KEY = "animal_test_AnExampleKeyThatOpensNothingHere0iR7H8"
"""It opens only a local store, while `animal-store invoke` or `make sam-local` runs."""
_ANIMALS = 5


def add_pets(dynamodb: "DynamoDBClient", table: str) -> None:
    """Add openapi.yaml's examples to a store without animals; one with a counter keeps its own."""
    items = [{"pk": "counter", "id": 0, "value": _ANIMALS}]
    for number, example in zip(range(_ANIMALS), cycle(examples()), strict=False):
        items.append({"pk": "pet", "id": number + 1, **example})
    with suppress(dynamodb.exceptions.ConditionalCheckFailedException):
        for item in items:
            typed = TypeSerializer().serialize(item)["M"]
            new = "attribute_not_exists(pk)"
            dynamodb.put_item(TableName=table, Item=typed, ConditionExpression=new)


def remove_key(keys: KeyTable) -> None:
    """Let the example key open nothing any more."""
    digest = api_key.digest(EXAMPLE_KEY)
    keys.dynamodb.delete_item(TableName=keys.name, Key={"hash": {"S": digest}})


@contextmanager
def prepared(gateway: Gateway, store: Store) -> Iterator[None]:
    """Prepare a local store: each file in `events/` gets the response that its name promises.

    The example key is valid until the end, or until that of another such command. EVENTS=0
    prepares nothing.
    """
    tables = gateway.template.tables
    if os.environ.get("EVENTS") == "0":
        yield
        return
    keys = KeyTable(store.dynamodb, tables[KEY_TABLE].name)
    remove_key(keys)
    keys.put(KeyRecord(api_key.digest(EXAMPLE_KEY), "events", int(time.time())))
    try:
        add_pets(store.dynamodb, tables["AnimalsTable"].name)
        # create-422.json sends another animal under the Idempotency-Key of such a one.
        for first in ROOT.glob("events/*-201-idempotency-key.json"):
            with redirect_stdout(io.StringIO()):
                run(gateway, first)
        yield
    finally:
        remove_key(keys)


def run(gateway: Gateway, event: Path) -> Any:
    """Return the response of an event's function."""
    content = json.loads(event.read_text("utf-8"))
    route, _ = gateway.template.find(content["httpMethod"], content["path"])
    # Longer than the function's own timeout: someone may be at a breakpoint.
    return gateway.invoke(route.function, content, 15 * 60)


def invoke(
    event: Annotated[Path, typer.Argument(help="An API Gateway proxy event.")],
) -> None:
    """Run one handler with an event; its response goes to stdout, its log to stderr.

    The status is 1 if the response is a failure of the service.
    """
    with redirect_stdout(sys.stderr), open_store(DataFolder()) as store:
        # The stage of the events' cursors.
        gateway = store.load(load_template(stage="staging"))
        with prepared(gateway, store):
            response = run(gateway, event)
    print(json.dumps(response, indent=2, ensure_ascii=False))
    raise typer.Exit(response["statusCode"] >= HTTPStatus.INTERNAL_SERVER_ERROR)
