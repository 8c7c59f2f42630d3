"""Runs the functions in this process as Lambda does, with the events of `events/`: no HTTP.

Unit tests use it, so that they can make each call to the store fail (`fault_injection`). For
`make run` as its users see it, see `processes`.
"""

import atexit
import io
import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from animal_store import api_key
from botocore.awsrequest import AWSResponse

from tools import ROOT
from tools.key_table import EXAMPLE_KEY, KeyRecord
from tools.local.events import add_pets
from tools.local.folder import DataFolder
from tools.local.gateway import Handler, load_handlers
from tools.local.open_store import LocalService, open_store
from tools.local.store import intercept_new_clients
from tools.local.template import load_template

TEMPLATE = load_template("staging")
ANIMALS = TEMPLATE.tables["AnimalsTable"]["TableName"]
EVENTS = {
    path.stem: json.loads(path.read_text())
    for path in sorted((ROOT / "events").glob("*.json"))
}
SUCCESSES = [name for name in EVENTS if "-20" in name]
EXAMPLE_RECORD = KeyRecord(api_key.digest(EXAMPLE_KEY), "tests", created=1764892800)

_RESET = """
BEGIN;
CREATE TABLE IF NOT EXISTS original AS SELECT * FROM items;
DELETE FROM items;
INSERT INTO items SELECT * FROM original;
COMMIT;
"""

Event = dict[str, Any]
_UNTIL_EXIT = ExitStack()
atexit.register(_UNTIL_EXIT.close)


@cache
def service() -> LocalService:
    """Open this process's one store, with the key and animals of `events/`.

    From then on, the SDK in this process ignores the user's AWS settings.
    """
    data = _UNTIL_EXIT.enter_context(tempfile.TemporaryDirectory())
    store = open_store(DataFolder(Path(data)), TEMPLATE)
    opened = _UNTIL_EXIT.enter_context(store)
    # Undo open_store's settings: moto answers only at AWS's addresses, and npm may need a proxy.
    del os.environ["AWS_ENDPOINT_URL"], os.environ["no_proxy"]
    opened.keys().put(EXAMPLE_RECORD)
    add_pets(opened)
    return opened


def sdk() -> Any:
    """Return the DynamoDB client for the store."""
    return service().dynamodb


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
    found = TEMPLATE.find(event["httpMethod"], event["path"])
    assert found
    return found[0].function


_HANDLERS: dict[str, Handler] = {}


def load(answer: Callable[..., AWSResponse]) -> None:
    """Import the layer and the functions, once; `answer` answers their requests to the store."""
    if not _HANDLERS:
        service()  # sets variables for the layer's SDK client
        with intercept_new_clients(answer):
            _HANDLERS.update(load_handlers(TEMPLATE))


@contextmanager
def layer_copy() -> Iterator[None]:
    """Let the block import a copy of the layer and change the environment; then undo both."""
    modules = dict(sys.modules)
    with mock.patch.dict(os.environ), mock.patch.object(sys, "path", [*sys.path]):
        try:
            yield
        finally:
            # Remove the copy's modules, so that no later import mixes them with the original.
            for name in list(sys.modules):
                if name.startswith("animal_store."):
                    del sys.modules[name]
            sys.modules.update(modules)


# All requests share this stdout, because the logger keeps that of the first failure.
_STDOUT = io.StringIO()


def invoke(function: str, event: Event, seconds: float = 10) -> Response:
    """Send an event to a function that may run for this many seconds."""
    # The handlers use nothing else of Lambda's context.
    context = SimpleNamespace(get_remaining_time_in_millis=lambda: int(seconds * 1000))
    _STDOUT.seek(0)
    _STDOUT.truncate()
    with redirect_stdout(_STDOUT):
        result = _HANDLERS[function](event, context)
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
    items = sdk().scan(TableName=ANIMALS)["Items"]
    return [item for item in items if item["pk"]["S"].startswith(partition)]


def reset_store() -> None:
    """Restore the key and animals that `events/` uses."""
    with closing(sqlite3.connect(service().folder.database)) as store:
        store.executescript(_RESET)
