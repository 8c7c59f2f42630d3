"""DynamoDB for the functions that are measured: the embedded store over HTTP, and what its answers would cost.

Units are computed by the rules that AWS documents, as no local engine counts them:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html and, for the sizes of items,
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from botocore.awsrequest import AWSResponse

from benchmarks.loopback import Response
from tools import ROOT
from tools.local import service, template
from tools.local.dynamodb import Database

TEMPLATE = template.load(ROOT / "template.yaml", {"Stage": "staging"})
NAME = "Animal number {}"  # of the animal with this id


@dataclass
class Cost:
    """What functions have asked for: requests, and capacity units."""

    requests: int = 0
    read_units: float = 0.0
    write_units: float = 0.0


class FakeDynamoDb:
    """DynamoDB's HTTP interface in front of the embedded store; it can hang up after each answer."""

    def __init__(self, file: Path, animals: int, api_key: str) -> None:
        """Make the tables of template.yaml, with that many animals, a third of them in each status, and one API key."""
        self.cost, self.hangs_up = Cost(), False
        self._database = Database(file)
        self.close = self._database.close
        key = {
            "hash": hashlib.sha256(api_key.encode()).hexdigest(),
            "label": "benchmark",
            "created": 1796472000,
        }
        puts = [
            _put("ApiKeysTable", key),
            _put("AnimalsTable", {"pk": "counter", "id": 0, "value": animals}),
        ]
        for number in range(1, animals + 1):
            pet: dict[str, object] = {
                "pk": "pet",
                "id": number,
                "name": NAME.format(number),
                "categoryId": number % 12,
            }
            pet["status"] = ("available", "pending", "sold")[(number - 1) % 3]
            puts.append(
                _put(
                    "AnimalsTable",
                    {**pet, "token": hashlib.sha256(str(number).encode()).hexdigest()[:32]},
                )
            )
        for table in TEMPLATE.tables.values():
            self._ask("CreateTable", json.dumps(service.table_request(table)).encode())
        for first in range(0, len(puts), 100):
            self._ask(
                "TransactWriteItems",
                json.dumps({"TransactItems": puts[first : first + 100]}).encode(),
            )

    def respond(self, _path: str, headers: Message, body: bytes) -> Response:
        """Answer a request of the SDK."""
        answer = self._ask(headers["x-amz-target"].rpartition(".")[2], body)
        self._charge(json.loads(body), json.loads(answer.content))
        close = {"Connection": "close"} if self.hangs_up else {}
        return (
            200,
            answer.content,
            {"Content-Type": "application/x-amz-json-1.0", **answer.headers, **close},
        )

    def _ask(self, operation: str, body: bytes) -> AWSResponse:
        request: Any = SimpleNamespace(url="https://127.0.0.1/", body=body)
        answer = self._database.answer(f"before-send.dynamodb.{operation}", request)
        if answer.status_code != 200:  # noqa: PLR2004
            raise RuntimeError(f"The embedded store refuses {operation}: {answer.text}")
        return answer

    def _charge(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        self.cost.requests += 1
        if "Item" in request:
            # Once more when the animal is in the index, which has all attributes.
            writes = 1 + ("status" in request["Item"])
            self.cost.write_units += writes * math.ceil(_size(request["Item"]) / 1024)
        elif "UpdateExpression" in request:
            self.cost.write_units += math.ceil(
                _size({**request["Key"], **answer["Attributes"]}) / 1024
            )
        else:
            items = answer.get("Items", [answer["Item"]] if "Item" in answer else [])
            units = max(1, math.ceil(sum(map(_size, items)) / 4096))
            self.cost.read_units += units if request.get("ConsistentRead") else units / 2


def _put(table: str, values: Mapping[str, object]) -> dict[str, Any]:
    item = {
        name: {"N" if isinstance(value, int) else "S": str(value)} for name, value in values.items()
    }
    return {"Put": {"TableName": TEMPLATE.tables[table].name, "Item": item}}


def _size(item: dict[str, dict[str, str]]) -> int:
    """Compute the size of an item in bytes: names and texts in UTF-8, a number one byte per two digits and one more."""
    size = 0
    for name, value in item.items():
        ((kind, content),) = value.items()
        number = math.ceil(len(content.lstrip("-").strip("0")) / 2) + 1 + content.startswith("-")
        size += len(name.encode()) + (number if kind == "N" else len(content.encode()))
    return size
