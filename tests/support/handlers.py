"""Runs the functions in this process as Lambda does, with the events of `events/`."""

import io
import json
import os
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from animal_store import api_key
from boto3.dynamodb.types import TypeDeserializer

from tools import ROOT
from tools.key_table import EXAMPLE_KEY
from tools.local import service
from tools.local.events import add_pets
from tools.local.gateway import import_handlers
from tools.local.store import Database, answer_new_clients, create_tables
from tools.local.template import REGION

TEMPLATE = service.load_template(stage="staging")
ANIMALS = TEMPLATE.tables["AnimalsTable"]["TableName"]
API_KEYS = TEMPLATE.tables["ApiKeysTable"]["TableName"]
EVENTS = {
    path.stem: json.loads(path.read_text())
    for path in sorted((ROOT / "events").glob("*.json"))
}
SUCCESSES = [name for name in EVENTS if "-20" in name]

# The SDK uses no settings of this machine.
for variable in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[variable]
os.environ.update(
    TEMPLATE.environment,
    AWS_DEFAULT_REGION=REGION,
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",
)
del os.environ["AWS_CA_BUNDLE"]  # only the built layer has the file

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
        """The text as JSON; None if it is empty."""
        return json.loads(self.text) if self.text else None

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
    return import_handlers(TEMPLATE)


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


_FOLDER = tempfile.TemporaryDirectory()
DATABASE = Database(Path(_FOLDER.name) / "store.sqlite")
"""The one store of this process."""


@cache
def client() -> Any:
    """Return a client of the SDK that the store answers."""
    with answer_new_clients(DATABASE.answer):
        return service.client()


@cache
def _content() -> sqlite3.Connection:
    """Return a database with the template's tables and the events' key and animals."""
    create_tables(client(), TEMPLATE.tables.values())
    add_key(EXAMPLE_KEY)
    add_pets(client(), ANIMALS)
    content = sqlite3.connect(":memory:")
    DATABASE._connection.backup(content)
    return content


def empty_store() -> None:
    """Reset the store to the template's tables and the events' key and animals."""
    _content().backup(DATABASE._connection)


def ask(
    operation: str, table: str, *, database: Database = DATABASE, **parameters: Any
) -> Any:
    """Send a request to a store without the SDK; return the response."""
    body = json.dumps({"TableName": table, **parameters})
    request: Any = SimpleNamespace(url="", body=body)
    return json.loads(
        database.answer(f"before-send.dynamodb.{operation}", request).text
    )


def add_key(key: str, **members: Any) -> None:
    """Add a key to the key table; `members` are more attributes of its record."""
    item = {
        "hash": {"S": api_key.digest(key)},
        "label": {"S": "tests"},
        "created": {"N": "1764892800"},
    }
    ask("PutItem", API_KEYS, Item=item | members)


def items(partition: str = "", database: Database = DATABASE) -> list[Any]:
    """Return the items of the animals' table whose partition key begins with this text."""
    response = ask("Scan", ANIMALS, database=database)
    return [item for item in response["Items"] if item["pk"]["S"].startswith(partition)]


def pets(database: Database = DATABASE) -> list[Any]:
    """Return every animal as the service should return it."""
    deserialize = TypeDeserializer().deserialize
    animals = []
    for item in items("pet", database):
        members = item.keys() - {"pk", "createdAt", "createdBy", "token"}
        animals.append({name: deserialize(item[name]) for name in members})
    return animals
