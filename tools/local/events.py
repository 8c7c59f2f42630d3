"""The files in `events/`: what they rely on, and `animal-store invoke`, which takes one."""

import io
import json
import sys
import time
from contextlib import redirect_stdout, suppress
from http import HTTPStatus
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from animal_store import api_key
from boto3.dynamodb.types import TypeSerializer

from tools import ROOT
from tools.key_table import EXAMPLE_KEY, KeyRecord
from tools.local import LocalError
from tools.local.folder import DataFolder
from tools.local.gateway import Gateway
from tools.local.service import LocalService, examples, load_template, open_store
from tools.local.template import Template

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

_ANIMALS = 5
# Longer than a function's own timeout: someone may be at a breakpoint.
_SECONDS = 15 * 60


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


def events_folder() -> DataFolder:
    """Return the folder of a store in which the example key is valid."""
    return DataFolder(DataFolder().path / "events")


def add_examples(gateway: Gateway, service: LocalService) -> None:
    """Prepare a local store: each file in `events/` gets the response that its name promises."""
    key = KeyRecord(api_key.digest(EXAMPLE_KEY), "events", int(time.time()))
    service.keys(gateway.template).put(key)
    add_pets(service.dynamodb, gateway.template.tables["AnimalsTable"]["TableName"])
    # create-422.json repeats the Idempotency-Key of one of these with another animal.
    for creation in ROOT.glob("events/*-201-idempotency-key.json"):
        with redirect_stdout(io.StringIO()):
            gateway.invoke(*read_event(gateway.template, creation), _SECONDS)


def read_event(template: Template, path: Path) -> tuple[str, dict[str, Any]]:
    """Read an event; return the function to which its path and method lead, and the event."""
    try:
        event = json.loads(path.read_text("utf-8"))
        route, _ = template.find(event["httpMethod"], event["path"])
    except (LocalError, ValueError, LookupError, TypeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise LocalError(f"{path} is not an event of API Gateway: {why}") from error
    return route.function, event


def invoke(event: Path) -> None:
    """Run one handler with an event of API Gateway, on a store for events alone (DATA).

    Its response goes to stdout, its log to stderr. The status is 1 if the response is a failure of
    the service.
    """
    # The cursors in the events are of this stage.
    template = load_template(stage="staging")
    function, content = read_event(template, event)
    with redirect_stdout(sys.stderr), open_store(events_folder()) as service:
        gateway = service.gateway(template)
        add_examples(gateway, service)
        response = gateway.invoke(function, content, _SECONDS)
    print(json.dumps(response, indent=2, ensure_ascii=False))
    raise typer.Exit(response["statusCode"] >= HTTPStatus.INTERNAL_SERVER_ERROR)
