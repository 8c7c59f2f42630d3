"""Runs the functions in this process as Lambda does, with the events of `events/`."""

import io
import json
import os
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from animal_store import api_key

from tools import ROOT
from tools.key_table import EXAMPLE_KEY, KeyRecord
from tools.local.events import add_pets
from tools.local.folder import DataFolder
from tools.local.gateway import load_handlers
from tools.local.service import load_template, open_store

TEMPLATE = load_template("staging")
ANIMALS = TEMPLATE.tables["AnimalsTable"]["TableName"]
EVENTS = {
    path.stem: json.loads(path.read_text())
    for path in sorted((ROOT / "events").glob("*.json"))
}
SUCCESSES = [name for name in EVENTS if "-20" in name]

_STACK = ExitStack()  # folder and store stay open until the process ends
_DATA = _STACK.enter_context(tempfile.TemporaryDirectory())
SERVICE = _STACK.enter_context(open_store(DataFolder(Path(_DATA)), TEMPLATE))
"""The service of this process, with its one store."""
DATABASE = SERVICE.database
SDK: Any = SERVICE.dynamodb
KEYS = SERVICE.keys()
EXAMPLE_RECORD = KeyRecord(api_key.digest(EXAMPLE_KEY), "tests", created=1764892800)
# moto answers only requests to AWS's own addresses, and npm may need a proxy.
del os.environ["AWS_ENDPOINT_URL"], os.environ["no_proxy"]

Event = dict[str, Any]


@dataclass(frozen=True)
class Response:
    """The response of a function, and the log that the function wrote."""

    status: int
    headers: Mapping[str, str]
    text: str
    log: str = field(compare=False)

    @property
    def body(self) -> Any:
        """The text as JSON."""
        return json.loads(self.text)

    @property
    def lines(self) -> list[Any]:
        """The lines of the log as JSON. The line of the request is the last."""
        return [json.loads(line) for line in self.log.splitlines()]


def function_of(event: Event) -> str:
    """Return the function to which template.yaml routes an event."""
    route, _ = TEMPLATE.find(event["httpMethod"], event["path"])
    return route.function


@cache
def load() -> Mapping[str, Any]:
    """Import the layer and the functions; return each function's handler."""
    return load_handlers(TEMPLATE)


# Every request gets this stdout, because the logger keeps the stdout of the first failure.
_STDOUT = io.StringIO()


def invoke(function: str, event: Event, seconds: float = 10) -> Response:
    """Send an event to a function that may run for this many seconds."""
    # The handlers use nothing else of Lambda's context.
    context = SimpleNamespace(get_remaining_time_in_millis=lambda: int(seconds * 1000))
    _STDOUT.seek(0)
    _STDOUT.truncate()
    with redirect_stdout(_STDOUT):
        result = load()[function](event, context)
    log = _STDOUT.getvalue()
    print(log)  # pytest shows it if the test fails
    assert result["isBase64Encoded"] is False
    return Response(result["statusCode"], result["headers"], result["body"], log)


def send(
    name: str,
    headers: dict[str, list[str]] | None = None,
    seconds: float = 10,
    **members: Any,
) -> Response:
    """Send an event of `events/` to its function, with these headers and members replaced."""
    event: Event = EVENTS[name] | members
    event["multiValueHeaders"] = event["multiValueHeaders"] | (headers or {})
    return invoke(function_of(event), event, seconds)


def items(partition: str = "") -> list[Any]:
    """Return the items of the animals' table whose partition key begins with this text."""
    items = SDK.scan(TableName=ANIMALS)["Items"]
    return [item for item in items if item["pk"]["S"].startswith(partition)]


KEYS.put(EXAMPLE_RECORD)
add_pets(SERVICE)
_CONTENT = sqlite3.connect(":memory:")
DATABASE._connection.backup(_CONTENT)


def empty_store() -> None:
    """Reset the store to the template's tables and the events' key and animals."""
    _CONTENT.backup(DATABASE._connection)
