"""Opens the local store, and gives the handlers and the tools what they need to use it."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from animal_store import api_key
from botocore.session import Session

from tools.key_table import KeyTable
from tools.local.folder import DataFolder
from tools.local.gateway import Gateway, load_handlers
from tools.local.store import Database, intercept_new_clients
from tools.local.template import REGION, Template

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

# The settings of the SDK in this process.
_SDK_SETTINGS = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    # Nothing answers at this address, so no request can reach AWS. The functions' requests to
    # DynamoDB are not sent, because the store intercepts and answers them.
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "no_proxy": "*",
}


def client() -> "DynamoDBClient":
    """Make a DynamoDB client for the tools; the layer makes its own."""
    return cast("DynamoDBClient", Session().create_client("dynamodb"))


@dataclass(frozen=True)
class LocalService:
    """The service's folder and template, its open store, and a DynamoDB client for the store."""

    folder: DataFolder
    template: Template
    dynamodb: "DynamoDBClient"
    database: Database

    def gateway(self) -> Gateway:
        """Load the handlers, and let their DynamoDB client use the store."""
        with intercept_new_clients(self.database.answer):
            return Gateway(self.template, load_handlers(self.template))

    def keys(self) -> KeyTable:
        """Return the table of API keys."""
        table = self.template.tables["ApiKeysTable"]
        return KeyTable(self.dynamodb, table["TableName"], lambda: "a local user")

    def api_key(self) -> str:
        """Return the folder's API key; issue a new key first if the key file has no valid key."""
        path, keys = self.folder.api_key, self.keys()
        path.touch(0o600)
        key = path.read_text("utf-8").strip()
        active = [record.hash for record in keys.all() if record.state == "active"]
        if api_key.digest(key) not in active:
            key, _ = keys.issue("local", "test")
            path.write_text(f"{key}\n", "utf-8")
        return key


@contextmanager
def open_store(folder: DataFolder, template: Template) -> Iterator[LocalService]:
    """Open the store in a folder, and create the tables that the store lacks.

    Other processes may use the store at the same time. In this process, the SDK ignores the user's
    own settings, so that no request reaches AWS.

    Raises:
        CommandError, sqlite3.Error: SQLite cannot use the store's file.
        OSError: The folder cannot be created.
    """
    for name in [*os.environ]:
        if name.startswith("AWS_"):
            del os.environ[name]
    os.environ |= _SDK_SETTINGS
    with closing(Database(folder.database)) as database:
        with intercept_new_clients(database.answer):
            dynamodb = client()
        for table in template.tables.values():
            dynamodb.create_table(**table)  # an existing table keeps its items
        yield LocalService(folder, template, dynamodb, database)
