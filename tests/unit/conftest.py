"""The world of the unit tests: moto in place of DynamoDB, tables as template.yaml defines them, and no network."""

import importlib.util
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from tools.gateway import template

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

ROOT = Path(__file__).parents[2]
TEMPLATE = template.load(ROOT / "template.yaml", {"Stage": "staging"})

# The layer reads its environment and makes its client on import: all of this comes first.
for function in TEMPLATE.functions.values():
    os.environ.update(function.environment)
os.environ.update(AWS_DEFAULT_REGION=template.REGION, AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing")
os.environ.pop("AWS_ENDPOINT_URL_DYNAMODB", None)

from animal_store import api_key as api_keys  # noqa: E402
from animal_store import auth  # noqa: E402

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]

_TABLE_PROPERTIES = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")


@pytest.fixture(autouse=True)
def no_network(socket_disabled: None) -> None:
    """Fail any test that opens a socket."""


class Context:
    """What the handlers use of Lambda's context object."""

    aws_request_id = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"

    def get_remaining_time_in_millis(self) -> int:
        """Return the time that the template's functions have."""
        return 10_000


@pytest.fixture
def context() -> Context:
    """Give Lambda's context object."""
    return Context()


@pytest.fixture
def tables() -> Iterator["DynamoDBClient"]:
    """Make the tables of template.yaml, empty; give a client for them."""
    with mock_aws():
        client: DynamoDBClient = boto3.client("dynamodb")
        for table in TEMPLATE.tables.values():
            properties = {name: table.properties[name] for name in _TABLE_PROPERTIES if name in table.properties}
            client.create_table(TableName=table.name, **properties)
        auth._known, auth._unknown = auth._Cache(), auth._Cache()
        yield client


@pytest.fixture
def api_key(tables: "DynamoDBClient") -> str:
    """Put a valid API key into the key table."""
    key = api_keys.generate("test")
    tables.put_item(
        TableName=TEMPLATE.tables["ApiKeysTable"].name,
        Item={"hash": {"S": api_keys.digest(key)}, "label": {"S": "unit tests"}, "created": {"N": "1764892800"}},
    )
    return key


@cache
def _handler(folder: str) -> Handler:
    # Each function's module is named `app`: loaded under a name of its own.
    spec = importlib.util.spec_from_file_location(f"{folder}_app", ROOT / "functions" / folder / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Handler = module.handler
    return handler


@pytest.fixture
def load_handler() -> Callable[[str], Handler]:
    """Give the handler of a function by the name of its folder, such as `list_pets`."""
    return _handler
