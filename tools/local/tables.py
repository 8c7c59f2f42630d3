"""The tables that `template.yaml` defines, and clients for their administration."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from tools.local.template import Table

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL_DYNAMODB"
_CREATED_WITH = {"AttributeDefinitions", "KeySchema", "BillingMode", "GlobalSecondaryIndexes"}


def client() -> "DynamoDBClient":
    """Make a DynamoDB client for administration."""
    # A quarter of a second that not every command needs.
    from botocore.config import Config
    from botocore.session import Session

    config = Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 2})
    return cast("DynamoDBClient", Session().create_client("dynamodb", config=config))


def table_request(table: Table) -> dict[str, Any]:
    """Make the parameters of CreateTable; a table's other properties protect data on AWS."""
    return {"TableName": table.name, **{name: v for name, v in table.properties.items() if name in _CREATED_WITH}}


def create_tables(dynamodb: "DynamoDBClient", tables: Iterable[Table]) -> None:
    """Create the tables that do not exist yet, and wait until they can be used."""
    for table in tables:
        try:
            dynamodb.describe_table(TableName=table.name)
        except dynamodb.exceptions.ResourceNotFoundException:
            dynamodb.create_table(**table_request(table))
            dynamodb.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig={"Delay": 1})
            if expiry := table.properties.get("TimeToLiveSpecification"):
                dynamodb.update_time_to_live(TableName=table.name, TimeToLiveSpecification=expiry)
