"""The command `animal-store invoke`, and the store for the events in `events/`."""

import io
import json
import sys
import time
from contextlib import redirect_stdout, suppress
from itertools import cycle
from pathlib import Path
from typing import Any

from animal_store import api_key
from boto3.dynamodb.types import TypeSerializer

from tools import ROOT, CommandError
from tools.key_table import EXAMPLE_KEY, KeyRecord
from tools.local.folder import DataFolder
from tools.local.gateway import Gateway
from tools.local.open_store import LocalService, open_store
from tools.local.openapi import examples
from tools.local.template import Template, load_template

_ANIMAL_COUNT = 5


def add_pets(service: LocalService) -> None:
    """Add five animals like openapi.yaml's examples, unless the store has been used before.

    A used store has the id counter already.
    """
    table = service.template.tables["AnimalsTable"]["TableName"]
    items = [{"pk": "counter", "id": 0, "value": _ANIMAL_COUNT}]
    for number, example in zip(range(_ANIMAL_COUNT), cycle(examples()), strict=False):
        items.append({"pk": "pet", "id": number + 1, **example})
    with suppress(service.dynamodb.exceptions.ConditionalCheckFailedException):
        for item in items:
            typed_item = TypeSerializer().serialize(item)["M"]
            condition = "attribute_not_exists(pk)"
            service.dynamodb.put_item(
                TableName=table, Item=typed_item, ConditionExpression=condition
            )


def events_folder() -> DataFolder:
    """Return the folder of the store of `invoke` and `make sam-local`; `make run` has another."""
    return DataFolder(DataFolder().path / "events")


def add_examples(gateway: Gateway, service: LocalService) -> None:
    """Fill the store with the API key, the animals and the creations that the events need.

    Then the event in each file of `events/` gets the response that the file's name announces.
    """
    key = KeyRecord(api_key.digest(EXAMPLE_KEY), "events", int(time.time()))
    service.keys().put(key)
    add_pets(service)
    # Send the creations with an Idempotency-Key: create-422.json reuses one of their keys for
    # another animal, and must get 422.
    for creation in ROOT.glob("events/*-201-idempotency-key.json"):
        with redirect_stdout(io.StringIO()):
            gateway.invoke(*read_event(gateway.template, creation))


def read_event(template: Template, path: Path) -> tuple[str, dict[str, Any]]:
    """Read an event from a file; return its function's logical id, and the event."""
    try:
        event = json.loads(path.read_text("utf-8"))
        found = template.find(event["httpMethod"], event["path"])
    except (ValueError, LookupError, TypeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise CommandError(
            f"{path} is not an event of an API Gateway REST API: {why}"
        ) from error
    if not found:
        raise CommandError(f"{path}: no function answers this method and path")
    route, _ = found
    return route.function, event


def invoke(event: Path) -> None:
    """Run a function with an event of API Gateway, on a separate store in the folder DATA.

    The response goes to stdout, the function's log to stderr.
    """
    # A cursor is valid in only one stage, and the cursors in `events/` are for staging.
    template = load_template("staging")
    function, content = read_event(template, event)
    with redirect_stdout(sys.stderr), open_store(events_folder(), template) as service:
        gateway = service.gateway()
        add_examples(gateway, service)
        response = gateway.invoke(function, content)
    print(json.dumps(response, indent=2, ensure_ascii=False))
