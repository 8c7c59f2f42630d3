"""The service in this process: its store, its tables, its handlers, and the key of this machine."""

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import yaml
from animal_store import api_key
from botocore.session import Session

from tools import ROOT
from tools.key_table import KeyRecord, KeyTable
from tools.local import LocalError
from tools.local import template as templates
from tools.local.folder import DataFolder
from tools.local.gateway import Gateway, load_handlers
from tools.local.store import Database, create_tables
from tools.local.template import REGION, Template

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL_DYNAMODB"
_SETTINGS = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    # Nothing answers there. DynamoDB has its own address, or the database answers in its place.
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "no_proxy": "*",
}


def load_template(stage: str = "local", **parameters: str) -> Template:
    """Read the template as the local service does."""
    return templates.load(ROOT / "template.yaml", {"Stage": stage, **parameters})


def load_openapi() -> Any:
    """Read openapi.yaml."""
    return yaml.safe_load((ROOT / "openapi.yaml").read_text("utf-8"))


def examples() -> list[dict[str, Any]]:
    """Return the document's examples of a new animal."""
    body = load_openapi()["paths"]["/pets"]["post"]["requestBody"]
    shown = body["content"]["application/json"]["examples"]
    return [example["value"] for example in shown.values()]


def client() -> "DynamoDBClient":
    """Make a DynamoDB client for administration."""
    return cast("DynamoDBClient", Session().create_client("dynamodb"))


@dataclass(frozen=True)
class LocalService:
    """The service on a store: a client of DynamoDB, and the database, unless another answers."""

    folder: DataFolder
    dynamodb: "DynamoDBClient"
    database: Database | None = None

    def gateway(self, template: Template) -> Gateway:
        """Load the handlers, and create the tables and indexes that are missing."""
        with self.database.answer_new_clients() if self.database else nullcontext():
            handlers = load_handlers(template)
        create_tables(self.dynamodb, template.tables.values())
        return Gateway(template, handlers)

    def keys(self, template: Template) -> KeyTable:
        """Return the table of keys."""
        return KeyTable(self.dynamodb, template.tables["ApiKeysTable"]["TableName"])

    def api_key(self, template: Template) -> str:
        """Return this machine's key, and make one if there is none that is valid."""
        path, keys = self.folder.api_key, self.keys(template)
        key = path.read_text("utf-8").strip() if path.exists() else ""
        active = [record.hash for record in keys.all() if record.state == "active"]
        if api_key.digest(key) not in active:
            key = api_key.generate("test")
            path.write_text(f"{key}\n", "utf-8")
            now = int(time.time())
            keys.put(
                KeyRecord(api_key.digest(key), "local", now, issuedBy=keys.actor())
            )
        return key


@contextmanager
def open_store(folder: DataFolder) -> Iterator[LocalService]:
    """Open the store of a folder or of AWS_ENDPOINT_URL_DYNAMODB; others may be using it.

    All that the SDK reads of the user's variables and files is replaced in this process, so that
    AWS is out of reach. LocalError: AWS_ENDPOINT_URL_DYNAMODB leads to another machine.
    """
    endpoint = os.environ.get(ENDPOINT_VARIABLE)
    if endpoint and urlsplit(endpoint).hostname not in {
        "127.0.0.1",
        "localhost",
        "::1",
    }:
        raise LocalError(
            f"{ENDPOINT_VARIABLE}={endpoint} is not on this machine. Unset it, or name a DynamoDB"
            " at http://127.0.0.1:PORT"
        )
    for name in [*os.environ]:
        if name.startswith("AWS_"):
            del os.environ[name]
    os.environ |= _SETTINGS
    if endpoint:
        os.environ[ENDPOINT_VARIABLE] = endpoint
        yield LocalService(folder, client())
        return
    folder.refuse_other_version()
    with closing(Database(folder.database)) as database:
        with database.answer_new_clients():
            dynamodb = client()
        yield LocalService(folder, dynamodb, database)
