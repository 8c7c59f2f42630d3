"""The service in this process: its store, its tables, its handlers, and the key of this machine."""

import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from lambda_local import template as templates
from lambda_local.template import Template

from tools import ROOT
from tools.local import LocalError
from tools.local.folder import DataFolder

if TYPE_CHECKING:
    from lambda_local.dynamodb import Database
    from lambda_local.gateway import Gateway
    from types_boto3_dynamodb import DynamoDBClient

KEY_TABLE = "ApiKeysTable"
ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL_DYNAMODB"
REGION = "us-east-1"


def load_template(
    path: Path = ROOT / "template.yaml", stage: str = "local"
) -> Template:
    """Read the template as the local service does."""
    return templates.load(path, {"Stage": stage}, stack="animal-store-local")


def base_path(template: Template) -> str:
    """Return the first path segment of the routes, such as `/v1`."""
    return "/" + template.routes[0].resource.split("/")[1]


def client() -> "DynamoDBClient":
    """Make a DynamoDB client for administration."""
    # A quarter of a second that not every command needs.
    from botocore.config import Config
    from botocore.session import Session

    config = Config(
        connect_timeout=3,
        read_timeout=10,
        retries={"mode": "standard", "total_max_attempts": 2},
    )
    return cast("DynamoDBClient", Session().create_client("dynamodb", config=config))


@dataclass(frozen=True, slots=True)
class Store:
    """The DynamoDB of a data folder: a client, and the database, if it is the embedded one."""

    folder: DataFolder
    dynamodb: "DynamoDBClient"
    database: "Database | None" = None

    def load(self, template: Template) -> "Gateway":
        """Load the handlers, and create the tables that are missing."""
        # Late: what only needs the store has no use for them.
        from lambda_local.dynamodb import create_tables
        from lambda_local.gateway import Gateway, load_handlers

        handlers = load_handlers(template)
        layer = sys.modules.get("animal_store.dynamodb")
        if layer and self.database:
            self.database.attach(layer.client)
        create_tables(self.dynamodb, template.tables.values())
        return Gateway(template, handlers)

    def key(self, template: Template) -> str:
        """Find or make the key of this machine; make it known to a store that was emptied."""
        # Late: a template elsewhere has a layer of its own, which `load` imports first.
        from animal_store import api_key

        from tools.key_table import KeyRecord, KeyTable

        keys, path = (
            KeyTable(self.dynamodb, template.tables[KEY_TABLE].name),
            self.folder.api_key,
        )
        key = path.read_text("utf-8", "replace").strip() if path.exists() else ""
        record = keys.get(api_key.digest(key))
        if not api_key.is_well_formed(key) or (
            record and record.state(time.time()) != "active"
        ):
            key, record = api_key.generate("test"), None
            path.unlink(missing_ok=True)
            path.touch(0o600)
            path.write_text(f"{key}\n")
        if record is None:
            keys.put(
                KeyRecord(
                    api_key.digest(key), "local", int(time.time()), issuedBy=keys.who()
                )
            )
        return key


@contextmanager
def open_store(folder: DataFolder) -> Iterator[Store]:
    """Open the store of a folder or of AWS_ENDPOINT_URL_DYNAMODB; others may be using it."""
    from botocore.exceptions import BotoCoreError, ClientError
    from lambda_local.dynamodb import Database

    endpoint = os.environ.get(ENDPOINT_VARIABLE)
    if not endpoint:  # whatever the user's own settings for AWS are
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]
        os.environ.update(
            AWS_CONFIG_FILE=os.devnull, AWS_SHARED_CREDENTIALS_FILE=os.devnull
        )
    # DynamoDB Local, for instance, needs credentials, but takes any.
    if not endpoint or urlsplit(endpoint).hostname in {"127.0.0.1", "::1", "localhost"}:
        os.environ.setdefault("AWS_ACCESS_KEY_ID", "local")
        os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "local")
        os.environ.setdefault(
            "AWS_DEFAULT_REGION", os.environ.get("AWS_REGION", REGION)
        )
    try:
        dynamodb = client()
        if endpoint:
            yield Store(folder, dynamodb)
        else:
            advice = (
                "Put a good copy in its place, or start with an empty store: "
                f"make reset DATA={shlex.quote(str(folder.path))}"
            )
            with closing(Database(folder.database, advice)) as database:
                database.attach(dynamodb)
                yield Store(folder, dynamodb, database)
    except (BotoCoreError, ClientError) as error:
        raise LocalError(
            f"the store at {endpoint or folder.path} does not answer as it should: {error}"
        ) from error
