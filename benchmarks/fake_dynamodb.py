"""DynamoDB for the functions that are measured: the embedded store over HTTP."""

import hashlib
from email.message import Message
from functools import cache
from types import SimpleNamespace
from typing import Any

import boto3
from lambda_local.dynamodb import Database, create_tables

from benchmarks.loopback import Response
from benchmarks.operations import API_KEY
from benchmarks.packages import BUILD, TEMPLATE


@cache
def _database() -> Database:
    """Make the tables of template.yaml, with animals in each status, and one API key."""
    database = Database(BUILD / "tables")
    dynamodb = boto3.resource(
        "dynamodb", "none", aws_access_key_id="none", aws_secret_access_key="none"
    )
    database.attach(dynamodb.meta.client)
    create_tables(dynamodb.meta.client, TEMPLATE.tables.values())
    keys = dynamodb.Table(TEMPLATE.tables["ApiKeysTable"].name)
    digest = hashlib.sha256(API_KEY.encode()).hexdigest()
    keys.put_item(Item={"hash": digest, "label": "benchmark", "created": 1796472000})
    animals = dynamodb.Table(TEMPLATE.tables["AnimalsTable"].name)
    animals.put_item(Item={"pk": "counter", "id": 0, "value": 300})
    for number in range(1, 301):
        animal: dict[str, Any] = {
            "pk": "pet",
            "id": number,
            "name": f"Animal number {number}",
            "categoryId": number % 12,
            "status": ("available", "pending", "sold")[number % 3],
            "token": hashlib.sha256(str(number).encode()).hexdigest()[:32],
        }
        animals.put_item(Item=animal)
    return database


class FakeDynamoDb:
    """DynamoDB's HTTP interface in front of the embedded store; it can hang up after an answer."""

    def __init__(self) -> None:
        self.requests, self.hangs_up = 0, False
        self._database = _database()

    def respond(self, _path: str, headers: Message, body: bytes) -> Response:
        """Answer a request of the SDK."""
        self.requests += 1
        request: Any = SimpleNamespace(url="", body=body)
        answer = self._database.answer(headers["X-Amz-Target"], request)
        close = {"Connection": "close"} if self.hangs_up else {}
        sent = {"Content-Type": "application/x-amz-json-1.0", **answer.headers, **close}
        return answer.status_code, answer.content, sent
