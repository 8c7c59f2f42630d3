"""DynamoDB for the functions that are measured: the embedded store over HTTP, and what its answers would cost.

Units are computed by the rules that AWS documents, as no local engine counts them:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html and, for the sizes of items,
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.loopback import Response
from tools import ROOT
from tools.local import service, template
from tools.local.dynamodb import Database

TEMPLATE = template.load(ROOT / "template.yaml", {"Stage": "staging"})
STATUSES = ("available", "pending", "sold")
_READ_UNIT_BYTES, _WRITE_UNIT_BYTES = 4096, 1024


@dataclass
class Cost:
    """What functions have asked for: requests, and capacity units."""

    requests: int = 0
    read_units: float = 0.0
    write_units: float = 0.0


def name_of(number: int) -> str:
    """Name the animal with this id."""
    return f"Animal number {number}"


def fill(file: Path, animals: int, api_key: str) -> None:
    """Write the tables of template.yaml, with that many animals, a third of them in each status, and one API key."""
    pets, keys = TEMPLATE.tables["AnimalsTable"].name, TEMPLATE.tables["ApiKeysTable"].name
    key = {"hash": hashlib.sha256(api_key.encode()).hexdigest(), "label": "benchmark", "created": 1796472000}
    puts = [_put(keys, key), _put(pets, {"pk": "counter", "id": 0, "value": animals})]
    for number in range(1, animals + 1):
        pet: dict[str, object] = {"pk": "pet", "id": number, "name": name_of(number), "categoryId": number % 12}
        token = hashlib.sha256(str(number).encode()).hexdigest()[:32]
        puts.append(_put(pets, {**pet, "status": STATUSES[(number - 1) % len(STATUSES)], "token": token}))
    with closing(Database(file)) as database:
        for table in TEMPLATE.tables.values():
            _ask(database, "CreateTable", json.dumps(service.table_request(table)).encode())
        for first in range(0, len(puts), 100):
            _ask(database, "TransactWriteItems", json.dumps({"TransactItems": puts[first : first + 100]}).encode())


def _put(table: str, values: Mapping[str, object]) -> dict[str, Any]:
    item = {name: {"N" if isinstance(value, int) else "S": str(value)} for name, value in values.items()}
    return {"Put": {"TableName": table, "Item": item}}


class FakeDynamoDb:
    """DynamoDB's HTTP interface in front of tables that `fill` has written; it can hang up after each answer."""

    def __init__(self, file: Path) -> None:
        self.cost = Cost()
        self.hangs_up = False
        self._database = Database(file)
        self.close = self._database.close

    def respond(self, _path: str, headers: Message, body: bytes) -> Response:
        """Answer a request of the SDK."""
        status, answer, named = _ask(self._database, headers["x-amz-target"].rpartition(".")[2], body)
        self._charge(json.loads(body), json.loads(answer))
        return status, answer, {**named, "Connection": "close"} if self.hangs_up else named

    def _charge(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        self.cost.requests += 1
        if "Item" in request:
            # Once more when the animal is in the index, which has all attributes.
            writes = 1 + ("status" in request["Item"])
            self.cost.write_units += writes * math.ceil(_size(request["Item"]) / _WRITE_UNIT_BYTES)
        elif "UpdateExpression" in request:
            self.cost.write_units += math.ceil(_size({**request["Key"], **answer["Attributes"]}) / _WRITE_UNIT_BYTES)
        else:
            items = answer.get("Items", [answer["Item"]] if "Item" in answer else [])
            units = max(1, math.ceil(sum(map(_size, items)) / _READ_UNIT_BYTES))
            self.cost.read_units += units if request.get("ConsistentRead") else units / 2


def _ask(database: Database, operation: str, body: bytes) -> Response:
    request: Any = SimpleNamespace(url="https://127.0.0.1/", body=body)
    answer = database.answer(f"before-send.dynamodb.{operation}", request)
    if answer.status_code != 200:  # noqa: PLR2004
        raise RuntimeError(f"The embedded store refuses {operation}: {answer.text}")
    return 200, answer.content, {"Content-Type": "application/x-amz-json-1.0", **answer.headers}


def _size(item: dict[str, dict[str, str]]) -> int:
    """Compute the size of an item in bytes: names and texts in UTF-8, a number one byte per two digits and one more."""
    size = 0
    for name, value in item.items():
        ((kind, content),) = value.items()
        number = math.ceil(len(content.lstrip("-").strip("0")) / 2) + 1 + content.startswith("-")
        size += len(name.encode()) + (number if kind == "N" else len(content.encode()))
    return size
