"""DynamoDB for the functions that are measured: the embedded store over HTTP."""

import hashlib
import json
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from botocore.awsrequest import AWSResponse
from lambda_local.dynamodb import Database

from benchmarks.loopback import Response
from tools.local import service

TEMPLATE = service.load_template(stage="staging")
NAME = "Animal number {}"  # of the animal with this id
ANIMALS = 300


class FakeDynamoDb:
    """DynamoDB's HTTP interface in front of the embedded store; it can hang up after an answer."""

    def __init__(self, file: Path, api_key: str) -> None:
        """Make the tables of template.yaml, with animals in each status, and one API key."""
        self.requests, self.hangs_up = 0, False
        self._database = Database(file)
        self.close = self._database.close
        for table in TEMPLATE.tables.values():
            self._ask("CreateTable", table.request)
        digest = hashlib.sha256(api_key.encode()).hexdigest()
        self._put("ApiKeysTable", hash=digest, label="benchmark", created=1796472000)
        self._put("AnimalsTable", pk="counter", id=0, value=ANIMALS)
        for number in range(1, ANIMALS + 1):
            status = ("available", "pending", "sold")[number % 3]
            pet = {"id": number, "name": NAME.format(number), "categoryId": number % 12}
            token = hashlib.sha256(str(number).encode()).hexdigest()[:32]
            self._put("AnimalsTable", pk="pet", **pet, status=status, token=token)

    def respond(self, _path: str, headers: Message, body: bytes) -> Response:
        """Answer a request of the SDK."""
        self.requests += 1
        answer = self._ask(headers["x-amz-target"].rpartition(".")[2], json.loads(body))
        close = {"Connection": "close"} if self.hangs_up else {}
        sent = {"Content-Type": "application/x-amz-json-1.0", **answer.headers, **close}
        return 200, answer.content, sent

    def _put(self, table: str, **values: str | int) -> None:
        item = {}
        for name, value in values.items():
            item[name] = {"N" if isinstance(value, int) else "S": str(value)}
        self._ask("PutItem", {"TableName": TEMPLATE.tables[table].name, "Item": item})

    def _ask(self, operation: str, body: dict[str, Any]) -> AWSResponse:
        request: Any = SimpleNamespace(
            url="https://127.0.0.1/", body=json.dumps(body).encode()
        )
        answer = self._database.answer(f"before-send.dynamodb.{operation}", request)
        if answer.status_code != 200:  # noqa: PLR2004
            raise RuntimeError(f"The embedded store refuses {operation}: {answer.text}")
        return answer
