"""The service in this process: its store, its tables, its handlers, and the key of this machine."""

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from botocore.config import Config
from botocore.exceptions import BotoCoreError
from botocore.session import Session

from tools import ROOT
from tools.local import LocalError
from tools.local import template as templates
from tools.local.folder import DataFolder, write_private
from tools.local.gateway import Gateway, load_handlers
from tools.local.store import Database, create_tables, keep_local
from tools.local.template import Template

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

KEY_TABLE = "ApiKeysTable"
ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL_DYNAMODB"
REGION = "us-east-1"


def load_template(
    path: Path = ROOT / "template.yaml", stage: str = "local"
) -> Template:
    """Read the template as the local service does."""
    return templates.load(path, {"Stage": stage}, stack="animal-store-local")


def client() -> "DynamoDBClient":
    """Make a DynamoDB client for administration."""
    config = Config(
        connect_timeout=3, read_timeout=10, retries={"total_max_attempts": 2}
    )
    return cast("DynamoDBClient", Session().create_client("dynamodb", config=config))


@dataclass(frozen=True, slots=True)
class Store:
    """The DynamoDB of a data folder: a client, and the database, if it is the embedded one."""

    folder: DataFolder
    dynamodb: "DynamoDBClient"
    database: Database | None = None

    def load(self, template: Template) -> Gateway:
        """Load the handlers, and create the tables that are missing."""
        handlers = load_handlers(template)
        create_tables(self.dynamodb, template.tables.values())
        return Gateway(template, handlers)

    def key(self, template: Template) -> str:
        """Find or make this machine's key; add it to a store that was emptied.

        A command that was killed may have left the key of the events: it is removed.
        """
        # Late: a template elsewhere has its own layer, which `load` imports first.
        from animal_store import api_key

        from tools.key_table import KeyRecord, KeyTable
        from tools.local import events

        path = self.folder.api_key
        keys = KeyTable(self.dynamodb, template.tables[KEY_TABLE].name)
        events.remove_key(keys)
        key = path.read_text("utf-8").strip() if path.exists() else ""
        record = keys.get(api_key.digest(key))
        is_refused = record and record.state != "active"
        if is_refused or not api_key.is_well_formed(key):
            key, record = api_key.generate("test"), None
            write_private(path, f"{key}\n")
        if record is None:
            digest, now = api_key.digest(key), int(time.time())
            keys.put(KeyRecord(digest, "local", now, issuedBy=keys.who()))
        return key


@contextmanager
def open_store(folder: DataFolder) -> Iterator[Store]:
    """Open the store of a folder or of AWS_ENDPOINT_URL_DYNAMODB; others may be using it."""
    if os.environ.get(ENDPOINT_VARIABLE):
        keep_local(None)
        try:
            dynamodb = client()
        except BotoCoreError as error:
            raise LocalError(
                f"{error} Set AWS_DEFAULT_REGION, AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY: any will do for DynamoDB Local"
            ) from error
        yield Store(folder, dynamodb)
        return
    advice = (
        "Put a good copy in its place, or start with an empty store: "
        f"make reset DATA={folder.path}"
    )
    folder.create()
    with closing(Database(folder.database, advice)) as database:
        keep_local(database)
        yield Store(folder, client(), database)
