"""The tables that `template.yaml` defines, and the SDK's way to the DynamoDB that has them."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tools.local.template import REGION, Table

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL_DYNAMODB"

_LOCAL_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
# What CreateTable takes of a table's and of an index's properties; the rest protects data on AWS.
_TABLE_PROPERTIES = {"AttributeDefinitions", "KeySchema", "BillingMode", "ProvisionedThroughput"}
_INDEX_PROPERTIES = {"IndexName", "KeySchema", "Projection", "ProvisionedThroughput"}


def use_embedded_store() -> None:
    """Keep the SDK in this process from the user's own settings for AWS: its clients are attached to the store."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(
        _CREDENTIALS,
        AWS_REGION=REGION,
        AWS_DEFAULT_REGION=REGION,
        AWS_CONFIG_FILE=os.devnull,
        AWS_SHARED_CREDENTIALS_FILE=os.devnull,
        AWS_EC2_METADATA_DISABLED="true",
    )


def use_endpoint(endpoint: str) -> None:
    """Point the SDK in this process to another DynamoDB, with the user's own settings.

    One on this machine (DynamoDB Local) needs credentials, but takes any.
    """
    os.environ[ENDPOINT_VARIABLE] = endpoint
    if urlsplit(endpoint).hostname in _LOCAL_HOSTS and not {"AWS_ACCESS_KEY_ID", "AWS_PROFILE"} & os.environ.keys():
        os.environ.update(_CREDENTIALS)
    if "AWS_DEFAULT_REGION" not in os.environ and "AWS_PROFILE" not in os.environ:
        os.environ["AWS_DEFAULT_REGION"] = os.environ.get("AWS_REGION", REGION)


def client(endpoint: str | None = None) -> "DynamoDBClient":
    """Make a DynamoDB client for administration; without an endpoint, the SDK finds it."""
    # A quarter of a second that not every command needs.
    import boto3
    from botocore.config import Config

    config = Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 2})
    made: DynamoDBClient = boto3.client("dynamodb", endpoint_url=endpoint, config=config)
    return made


def table_request(table: Table) -> dict[str, Any]:
    """Make the parameters of CreateTable from a table's definition in the template."""
    request = {name: value for name, value in table.properties.items() if name in _TABLE_PROPERTIES}
    for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        if kind in table.properties:
            request[kind] = [
                {name: value for name, value in index.items() if name in _INDEX_PROPERTIES}
                for index in table.properties[kind]
            ]
    return {"TableName": table.name, **request}


def create_tables(dynamodb: "DynamoDBClient", tables: Iterable[Table]) -> None:
    """Create the tables that do not exist yet, and wait until they can be used."""
    for table in tables:
        try:
            dynamodb.describe_table(TableName=table.name)
            continue
        except dynamodb.exceptions.ResourceNotFoundException:
            dynamodb.create_table(**table_request(table))
        dynamodb.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        expiry = table.properties.get("TimeToLiveSpecification")
        if expiry:
            dynamodb.update_time_to_live(TableName=table.name, TimeToLiveSpecification=expiry)
