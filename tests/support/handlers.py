"""Run the functions in this process as Lambda does: environment, events of `events/`, handlers.

Import this before anything of the layer, which reads its environment when it is imported.
"""

import copy
import itertools
import json
import os
import runpy
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lambda_local.dynamodb import Database, create_tables
from pydantic_core import from_json

from tests.support import openapi
from tools import ROOT
from tools.local import service
from tools.local.events import EXAMPLE_KEY, add_pets

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

TEMPLATE = service.load_template(stage="staging")
ANIMALS, API_KEYS = (
    TEMPLATE.tables[name].name for name in ("AnimalsTable", "ApiKeysTable")
)
EVENTS = {
    path.stem: json.loads(path.read_text())
    for path in sorted((ROOT / "events").glob("*.json"))
}
SUCCESSES = [name for name in EVENTS if name.split("-")[1].startswith("2")]
for name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[name]
for function in TEMPLATE.functions.values():
    os.environ.update(function.environment)
os.environ.update(
    AWS_DEFAULT_REGION=service.REGION,
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",
)

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


class Context(NamedTuple):
    """What the handlers use of Lambda's context object."""

    seconds: float = 10

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


class Response(NamedTuple):
    """The response of a function; `body` is read as JSON, None when there is none."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Any:
        return from_json(self.text, allow_inf_nan=False) if self.text else None


def operation_of(event: Mapping[str, Any]) -> openapi.Operation:
    """Find the operation that an event asks for."""
    found = openapi.find(event["httpMethod"], event["path"].removeprefix("/v1"))
    assert found, (
        f"openapi.yaml: add {event['httpMethod']} {event['path']}, which an event asks for."
    )
    return found


@cache
def handler(folder: str) -> Handler:
    """Load the handler of a function by the name of its folder; each module is named `app`."""
    return cast(
        "Handler",
        runpy.run_path(str(ROOT / "functions" / folder / "app.py"))["handler"],
    )


def function_of(event: Mapping[str, Any]) -> str:
    """Find the folder of the function that template.yaml routes an event to."""
    asked = (event["httpMethod"], event["resource"])
    for route in TEMPLATE.routes:
        if (route.method, route.resource) == asked:
            return TEMPLATE.functions[route.function].code.name
    raise AssertionError(f"template.yaml: add a function for {' '.join(asked)}.")


def invoke(event: dict[str, Any], context: Context | None = None) -> Response:
    """Send an event to the function that template.yaml routes it to."""
    result = handler(function_of(event))(copy.deepcopy(event), context or Context())
    assert result["isBase64Encoded"] is False
    return Response(result["statusCode"], result["headers"], result["body"])


def forget_keys() -> None:
    """Empty the layer's caches of API keys, as they are in a new execution environment."""
    from animal_store import auth

    auth._known._entries.clear()
    auth._unknown._entries.clear()


def problems(event: Mapping[str, Any], response: Response) -> list[str]:
    """List where the response to an event differs from what openapi.yaml declares for it."""
    return openapi.problems(
        operation_of(event),
        response.status,
        response.headers,
        response.text,
        in_process=True,
    )


# In memory where there is such a folder: no write need wait for a disk.
_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder in it has a name of its own
_FOLDER = tempfile.TemporaryDirectory(
    prefix="animal-store-", dir=_MEMORY if _MEMORY.is_dir() else None
)
_numbers = itertools.count()
_latest: list[Database] = []


@cache
def _client() -> "DynamoDBClient":
    # One for all stores: to make it takes longer than most tests.
    made: Any = service.client()
    events = made.meta.events
    # Late: another store may be the latest by then.
    send = lambda **sent: _latest[-1].answer(**sent)  # noqa: E731, PLW0108
    events.register("before-send.dynamodb", send)
    return cast("DynamoDBClient", made)


def client(database: Database) -> "DynamoDBClient":
    """Return the SDK's client by which tests look into a store: it leads into the latest one."""
    _latest[:] = [database]
    return _client()


@cache
def _prepared(*, pets: bool) -> Path:
    database = Database(Path(_FOLDER.name) / f"prepared-{pets}.sqlite")
    dynamodb = client(database)
    create_tables(dynamodb, TEMPLATE.tables.values())
    add_key(dynamodb, EXAMPLE_KEY)
    if pets:
        add_pets(dynamodb, ANIMALS)
    database.close()
    return database._path


def copy_database(path: Path, *, pets: bool = False) -> None:
    """Make the file of a store with the template's tables and the events' key, or animals too."""
    shutil.copy(_prepared(pets=pets), path)


def new_database(*, pets: bool = False) -> Database:
    """Make a store in memory, where there is such a folder, as `copy_database` does."""
    path = Path(_FOLDER.name) / f"{next(_numbers)}.sqlite"
    copy_database(path, pets=pets)
    return Database(path)


def discard(database: Database) -> None:
    """Close a store, and delete its files."""
    database.close()
    for file in database._path.parent.glob(f"{database._path.name}*"):
        file.unlink()


def add_key(dynamodb: "DynamoDBClient", key: str, **members: Any) -> None:
    """Put a key into the key table."""
    from animal_store import api_key

    item = {
        "hash": {"S": api_key.digest(key)},
        "label": {"S": "tests"},
        "created": {"N": "1764892800"},
    }
    dynamodb.put_item(TableName=API_KEYS, Item=item | members)


def items(dynamodb: "DynamoDBClient") -> list[dict[str, Any]]:
    """Read the whole table of animals."""
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=ANIMALS, ConsistentRead=True
    )
    return [item for page in pages for item in page["Items"]]


def pets(dynamodb: "DynamoDBClient") -> list[dict[str, Any]]:
    """Read every animal as the service should answer it."""
    members = openapi.schema("Pet")["properties"].keys()
    found = [item for item in items(dynamodb) if item["pk"]["S"] == "pet"]
    return [
        {
            name: item[name].get("S") or int(item[name]["N"])
            for name in item.keys() & members
        }
        for item in found
    ]
