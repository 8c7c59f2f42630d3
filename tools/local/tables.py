"""The tables that `template.yaml` defines, and clients for their administration."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from tools.local.template import Table

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL_DYNAMODB"

# What CreateTable takes of a table's and of an index's properties; the rest protects data on AWS.
_TABLE_PROPERTIES = {"AttributeDefinitions", "KeySchema", "BillingMode", "ProvisionedThroughput"}
_INDEX_PROPERTIES = {"IndexName", "KeySchema", "Projection", "ProvisionedThroughput"}


def client() -> "DynamoDBClient":
    """Make a DynamoDB client for administration."""
    # A quarter of a second that not every command needs.
    from botocore.config import Config
    from botocore.session import Session

    config = Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 2})
    return cast("DynamoDBClient", Session().create_client("dynamodb", config=config))


def table_request(table: Table) -> dict[str, Any]:
    """Make the parameters of CreateTable from a table's definition in the template."""
    request = {name: value for name, value in table.properties.items() if name in _TABLE_PROPERTIES}
    if indexes := table.properties.get("GlobalSecondaryIndexes"):
        request["GlobalSecondaryIndexes"] = [
            {name: value for name, value in index.items() if name in _INDEX_PROPERTIES} for index in indexes
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
        if expiry := table.properties.get("TimeToLiveSpecification"):
            dynamodb.update_time_to_live(TableName=table.name, TimeToLiveSpecification=expiry)
