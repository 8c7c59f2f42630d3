"""The service in this process: its store, its tables, its handlers, and the key of this machine."""

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import yaml
from botocore.session import Session

from tools import ROOT
from tools.local import template as templates
from tools.local.folder import DataFolder
from tools.local.gateway import Gateway, load_handlers
from tools.local.store import Database, create_tables, keep_local
from tools.local.template import Template

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

KEY_TABLE = "ApiKeysTable"
ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL_DYNAMODB"


def load_template(stage: str = "local") -> Template:
    """Read the template as the local service does."""
    path = ROOT / "template.yaml"
    return templates.load(path, {"Stage": stage}, stack="animal-store-local")


def document() -> Any:
    """Read openapi.yaml."""
    return yaml.safe_load((ROOT / "openapi.yaml").read_text("utf-8"))


def examples() -> list[dict[str, Any]]:
    """Return the document's examples of a new animal."""
    body = document()["paths"]["/pets"]["post"]["requestBody"]
    shown = body["content"]["application/json"]["examples"]
    return [example["value"] for example in shown.values()]


def client() -> "DynamoDBClient":
    """Make a DynamoDB client for administration."""
    return cast("DynamoDBClient", Session().create_client("dynamodb"))


@dataclass(frozen=True)
class Store:
    """The DynamoDB of a data folder: a client, and the database, if it is the local one."""

    folder: DataFolder
    dynamodb: "DynamoDBClient"
    database: Database | None = None

    def load(self, template: Template) -> Gateway:
        """Load the handlers, and create the tables and indexes that are missing."""
        handlers = load_handlers(template)
        create_tables(self.dynamodb, template.tables.values())
        return Gateway(template, handlers)

    def key(self, template: Template) -> str:
        """Find or make this machine's key.

        A command that was killed may have left the key of the events: it is removed.
        """
        # Late: `load` sets the layer's environment, and imports it.
        from animal_store import api_key

        from tools.key_table import KeyRecord, KeyTable
        from tools.local import events

        path = self.folder.api_key
        keys = KeyTable(self.dynamodb, template.tables[KEY_TABLE].name)
        events.remove_key(keys)
        key = path.read_text("utf-8").strip() if path.exists() else ""
        record = keys.get(api_key.digest(key))
        if record is None or record.state != "active":
            key = api_key.generate("test")
            path.write_text(f"{key}\n", "utf-8")
            keys.put(KeyRecord(api_key.digest(key), "local", int(time.time())))
        return key


@contextmanager
def open_store(folder: DataFolder) -> Iterator[Store]:
    """Open the store of a folder or of AWS_ENDPOINT_URL_DYNAMODB; others may be using it."""
    if os.environ.get(ENDPOINT_VARIABLE):
        keep_local(None)
        yield Store(folder, client())
        return
    with closing(Database(folder.database)) as database:
        keep_local(database)
        yield Store(folder, client(), database)
