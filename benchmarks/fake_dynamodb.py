"""DynamoDB for the functions that are measured: the embedded store over HTTP."""

import hashlib
import json
import math
from email.message import Message
from functools import cache
from types import SimpleNamespace
from typing import Any

import boto3
from lambda_local.dynamodb import Database, create_tables

from benchmarks.loopback import Response
from benchmarks.operations import API_KEY
from benchmarks.packages import BUILD, TEMPLATE

Item = dict[str, dict[str, str]]
"""An item in DynamoDB's own JSON."""


def animal(number: int) -> Item:
    """Make an animal with all attributes of one that was created without an Idempotency-Key."""
    digest = hashlib.sha256(str(number).encode()).hexdigest()
    return {
        "pk": {"S": "pet"},
        "id": {"N": str(number)},
        "name": {"S": f"Animal number {number}"},
        "categoryId": {"N": str(number % 12)},
        "status": {"S": ("available", "pending", "sold")[number % 3]},
        "token": {"S": digest[:32]},
        "createdBy": {"S": digest[:12]},
        "createdAt": {"N": "1796472000"},
    }


def size(item: Item) -> int:
    """Return an item's bytes, of which each two digits take one, and each number one more.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    total = 0
    for name, value in item.items():
        digits = math.ceil(len(value["N"]) / 2) + 1 if "N" in value else 0
        total += len(name) + len(value.get("S", "").encode()) + digits
    return total


def read_units(items: list[Item], *, consistent: bool) -> float:
    """Return what a request that reads these items consumes, by the rules that `size` names."""
    units = math.ceil(sum(map(size, items)) / 4096)
    return units if consistent else units / 2


@cache
def _database() -> Database:
    """Make the tables of template.yaml, with animals in each status, and one API key."""
    database = Database(BUILD / "tables")
    dynamodb = boto3.client(
        "dynamodb", "none", aws_access_key_id="none", aws_secret_access_key="none"
    )
    database.attach(dynamodb)
    create_tables(dynamodb, TEMPLATE.tables.values())
    digest = hashlib.sha256(API_KEY.encode()).hexdigest()
    key = {"hash": {"S": digest}, "label": {"S": "benchmark"}}
    key["created"] = {"N": "1796472000"}
    dynamodb.put_item(TableName=TEMPLATE.tables["ApiKeysTable"].name, Item=key)
    counter = {"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": "300"}}
    for item in (counter, *map(animal, range(1, 301))):
        dynamodb.put_item(TableName=TEMPLATE.tables["AnimalsTable"].name, Item=item)
    return database


class FakeDynamoDb:
    """DynamoDB's HTTP interface in front of the embedded store; it can hang up after an answer."""

    def __init__(self) -> None:
        self.requests, self.read_units, self.hangs_up = 0, 0.0, False
        self._database = _database()

    def respond(self, _path: str, headers: Message, body: bytes) -> Response:
        """Answer a request of the SDK."""
        self.requests += 1
        request: Any = SimpleNamespace(url="", body=body)
        answer = self._database.answer(headers["X-Amz-Target"], request)
        content = json.loads(answer.content)
        items = content.get("Items") or [content.get("Item", {})]
        is_consistent = json.loads(body).get("ConsistentRead", False)
        self.read_units += read_units(items, consistent=is_consistent)
        close = {"Connection": "close"} if self.hangs_up else {}
        sent = {"Content-Type": "application/x-amz-json-1.0", **answer.headers, **close}
        return answer.status_code, answer.content, sent
