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
from tools.local.gateway import load_handlers
from tools.local.store import Database, create_tables
from tools.local.template import REGION

TEMPLATE = service.load_template(stage="staging")
ANIMALS = TEMPLATE.tables["AnimalsTable"]["TableName"]
API_KEYS = TEMPLATE.tables["ApiKeysTable"]["TableName"]
EVENTS = {
    path.stem: json.loads(path.read_text())
    for path in sorted((ROOT / "events").glob("*.json"))
}
SUCCESSES = [name for name in EVENTS if "-20" in name]
for variable in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[variable]
os.environ.update(
    AWS_DEFAULT_REGION=REGION,
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",
)

Event = dict[str, Any]


@dataclass(frozen=True)
class Response:
    """The response of a function, and what the function printed meanwhile."""

    status: int
    headers: Mapping[str, str]
    text: str
    log: str = field(compare=False)

    @property
    def body(self) -> Any:
        """The text as JSON, or None without content."""
        return json.loads(self.text) if self.text else None

    @property
    def lines(self) -> list[Any]:
        """The lines of the log: one for each failure, then one for the request."""
        return [json.loads(line) for line in self.log.splitlines()]


def function_of(event: Event) -> str:
    """Find the function that template.yaml routes an event to."""
    route, _ = TEMPLATE.find(event["httpMethod"], event["path"])
    return route.function


@cache
def load() -> Mapping[str, Any]:
    """Import the layer and the functions; return the handlers by function."""
    return load_handlers(TEMPLATE)


# The logger keeps the stdout of the first failure, so each request has the same one.
_STDOUT = io.StringIO()


def invoke(function: str, event: Event, seconds: float = 10) -> Response:
    """Send an event to a function that has this many seconds."""
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
    """Send an event of `events/` with other headers and members to its function."""
    event: Event = EVENTS[name] | members
    event["multiValueHeaders"] = event["multiValueHeaders"] | (headers or {})
    return invoke(function_of(event), event, seconds)


_FOLDER = tempfile.TemporaryDirectory()
DATABASE = Database(Path(_FOLDER.name) / "store.sqlite")
"""The one store of this process."""


@cache
def client() -> Any:
    """Return a client of the SDK that the store answers."""
    with DATABASE.answer_new_clients():
        return service.client()


@cache
def _content() -> sqlite3.Connection:
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
    """Ask a store without the SDK."""
    body = json.dumps({"TableName": table, **parameters})
    request: Any = SimpleNamespace(url="", body=body)
    return json.loads(
        database.answer(f"before-send.dynamodb.{operation}", request).text
    )


def add_key(key: str, **members: Any) -> None:
    """Put a key into the key table."""
    item = {
        "hash": {"S": api_key.digest(key)},
        "label": {"S": "tests"},
        "created": {"N": "1764892800"},
    }
    ask("PutItem", API_KEYS, Item=item | members)


def items(partition: str = "", database: Database = DATABASE) -> list[Any]:
    """Read the items of the animals' table whose partition begins like this."""
    response = ask("Scan", ANIMALS, database=database)
    return [item for item in response["Items"] if item["pk"]["S"].startswith(partition)]


def pets(database: Database = DATABASE) -> list[Any]:
    """Read every animal as the service should return it."""
    deserialize = TypeDeserializer().deserialize
    animals = []
    for item in items("pet", database):
        returned = item.keys() - {"pk", "createdAt", "createdBy", "token"}
        animals.append({name: deserialize(item[name]) for name in returned})
    return animals
