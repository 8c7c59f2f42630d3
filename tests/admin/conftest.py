"""AWS as moto plays it, for what administrators run against it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from tests.functions import TEMPLATE
from tools.local.tables import table_request

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


@pytest.fixture
def tables() -> Iterator["DynamoDBClient"]:
    """Make the tables of template.yaml, empty; give a client for them."""
    with mock_aws():
        client = boto3.client("dynamodb")
        for table in TEMPLATE.tables.values():
            client.create_table(**table_request(table))
        yield client
