"""DynamoDB over TLS for the functions that are measured: the embedded store, and what its answers would cost.

Units are computed by the rules that AWS documents, as no local engine counts them:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html and, for the sizes of items,
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html.
"""

import hashlib
import json
import math
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import trustme

from benchmarks.loopback import Response
from tools import ROOT
from tools.local import template
from tools.local.dynamodb import Database

TEMPLATE = template.load(ROOT / "template.yaml", {"Stage": "staging"})
STATUSES = ("available", "pending", "sold")
_TABLE_PROPERTIES = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
_READ_UNIT_BYTES, _WRITE_UNIT_BYTES = 4096, 1024

AUTHORITY = trustme.CA(key_type=trustme.KeyType.RSA)
"""What every measured function trusts, together with all the authorities that its SDK brings."""


@cache
def tls() -> ssl.SSLContext:
    """Make a server's side of TLS with a chain of three, all RSA like those of DynamoDB."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    intermediate = AUTHORITY.create_child_ca(key_type=trustme.KeyType.RSA)
    intermediate.issue_cert("127.0.0.1", key_type=trustme.KeyType.RSA).configure_cert(context)
    return context


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
    database = Database(file)

    def ask(operation: str, **parameters: Any) -> None:
        answer = _ask(database, operation, json.dumps(parameters).encode())
        if answer.status != 200:  # noqa: PLR2004
            raise RuntimeError(f"The embedded store refuses {operation}: {answer.body.decode()}")

    for table in TEMPLATE.tables.values():
        known = {name: table.properties[name] for name in _TABLE_PROPERTIES if name in table.properties}
        ask("CreateTable", TableName=table.name, **{"GlobalSecondaryIndexes": [], **known})
    pets, keys = TEMPLATE.tables["AnimalsTable"].name, TEMPLATE.tables["ApiKeysTable"].name
    key = {"hash": {"S": hashlib.sha256(api_key.encode()).hexdigest()}}
    ask("PutItem", TableName=keys, Item={**key, "label": {"S": "benchmark"}, "created": {"N": "1796472000"}})
    ask("PutItem", TableName=pets, Item={"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": str(animals)}})
    for first in range(1, animals + 1, 100):
        numbers = range(first, min(first + 100, animals + 1))
        puts = [{"Put": {"TableName": pets, "Item": _pet(number)}} for number in numbers]
        ask("TransactWriteItems", TransactItems=puts)
    database.close()


def _pet(number: int) -> dict[str, Any]:
    return {
        "pk": {"S": "pet"},
        "id": {"N": str(number)},
        "name": {"S": name_of(number)},
        "categoryId": {"N": str(number % 12)},
        "status": {"S": STATUSES[(number - 1) % len(STATUSES)]},
        "token": {"S": hashlib.sha256(str(number).encode()).hexdigest()[:32]},
    }


class FakeDynamoDb:
    """DynamoDB's HTTP interface in front of tables that `fill` has written."""

    def __init__(self, file: Path) -> None:
        self.cost = Cost()
        self._database = Database(file)
        self._reads: dict[tuple[str, bytes], Response] = {}

    async def respond(self, _path: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Answer a request of the SDK; a read that has been answered since the last write, without looking again."""
        operation = headers["x-amz-target"].rpartition(".")[2]
        answer = self._reads.get((operation, body)) or _ask(self._database, operation, body)
        if operation in ("GetItem", "Query"):
            self._reads[operation, body] = answer
        else:
            self._reads.clear()
        self._charge(json.loads(body), json.loads(answer.body))
        return answer

    def close(self) -> None:
        """Close the tables."""
        self._database.close()

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
    return Response(
        answer.status_code, answer.content, {"Content-Type": "application/x-amz-json-1.0", **answer.headers}
    )


def _size(item: dict[str, Any]) -> int:
    """Compute the size of an item in bytes: names and texts in UTF-8, a number one byte per two digits and one more."""
    size = 0
    for name, value in item.items():
        ((kind, content),) = value.items()
        numeric = math.ceil(len(content.lstrip("-").strip("0")) / 2) + 1 + content.startswith("-")
        size += len(name.encode()) + (numeric if kind == "N" else len(content.encode()))
    return size
