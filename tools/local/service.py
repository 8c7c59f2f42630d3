"""The service in this process: its store, its tables, its handlers, and the key of this machine."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tools import ROOT
from tools.local import functions
from tools.local import template as templates
from tools.local.folder import DataFolder, FolderError
from tools.local.tables import ENDPOINT_VARIABLE, client, create_tables, use_embedded_store, use_endpoint
from tools.local.template import Template

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_dynamodb import DynamoDBClient

    from tools.local.gateway import Gateway

KEY_LABEL = "local"
KEY_TABLE = "ApiKeysTable"


def load_template(path: Path = ROOT / "template.yaml") -> Template:
    """Read the template as the local service does."""
    return templates.load(path, {"Stage": "local"})


@dataclass(frozen=True, slots=True)
class Store:
    """The DynamoDB of a data folder: a client for administration, and what gives other clients the same store."""

    folder: DataFolder
    dynamodb: "DynamoDBClient"
    attach: "Callable[[DynamoDBClient], object]"
    endpoint: str | None = None

    def load(self, template: Template) -> "Gateway":
        """Load the handlers, and create the tables that are missing."""
        # Late: what only needs the store has no use for it.
        from tools.local.gateway import Gateway

        handlers = functions.load(template)
        if layer := sys.modules.get("animal_store.dynamodb"):
            self.attach(layer.client)
        create_tables(self.dynamodb, template.tables.values())
        return Gateway(template, handlers)

    def key(self, template: Template) -> str:
        """Find or make the key of this machine; one that an emptied store does not know is made known again."""
        from animal_store import api_key

        from tools.admin.key_table import KeyRecord, KeyTable

        if KEY_TABLE not in template.tables:
            return ""
        keys, path = KeyTable(self.dynamodb, template.tables[KEY_TABLE].name), self.folder.api_key
        key = path.read_text("utf-8", "replace").strip() if path.exists() else ""
        if api_key.is_well_formed(key):
            record = keys.get(api_key.digest(key))
            if record is None:
                keys.put(KeyRecord(api_key.digest(key), KEY_LABEL, int(time.time())))
            if record is None or record.state(time.time()) == "active":
                return key
        key, _ = keys.issue(KEY_LABEL, "test", shared_label=True)
        self.folder.write_api_key(key)
        return key


@contextmanager
def open_store(folder: DataFolder) -> Iterator[Store]:
    """Open the store of a folder, or the one that AWS_ENDPOINT_URL_DYNAMODB names; others may be using it."""
    from botocore.exceptions import BotoCoreError, ClientError

    from tools.local.dynamodb import Database, DatabaseError

    endpoint = os.environ.get(ENDPOINT_VARIABLE)
    try:
        if endpoint:
            use_endpoint(endpoint)
            yield Store(folder, client(), lambda _: None, endpoint)
            return
        use_embedded_store()
        database = Database(folder.database)
        try:
            dynamodb = client()
            database.attach(dynamodb)
            yield Store(folder, dynamodb, database.attach)
        finally:
            database.close()
    except DatabaseError as error:
        raise FolderError(
            f"{error}\nPut a good copy in its place, or start with an empty one: {folder.reset_command}"
        ) from error
    except (BotoCoreError, ClientError) as error:
        raise FolderError(f"the store at {endpoint or folder.path} does not answer as it should: {error}") from error
