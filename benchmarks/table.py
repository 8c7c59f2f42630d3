"""The two tables, in memory: they answer the requests that the measured functions send, and count what those cost.

Units are computed by the rules that AWS documents, as local engines guess them:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html and, for the sizes of items,
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html.
A request of another kind is an error, never a guess.
"""

import hashlib
import json
import math
import re
from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import Any

Item = dict[str, dict[str, str]]

STATUSES = ("available", "pending", "sold")
_READ_UNIT_BYTES = 4096
_WRITE_UNIT_BYTES = 1024
_CONDITION = re.compile(r"\(?([#\w]+) = (:\w+)(?: AND ([#\w]+) > (:\w+))?\)?")


class UnknownRequestError(Exception):
    """A request that these tables do not answer."""


@dataclass
class Consumed:
    """What the functions have asked for: requests, and capacity units."""

    requests: int = 0
    read_units: float = 0.0
    write_units: float = 0.0


class Animals:
    """The animals and the table of API keys.

    Args:
        count: How many animals there are, with the ids 1 to `count`; a third of them in each status.
        api_key: The API key that is known.
    """

    def __init__(self, count: int, api_key: str) -> None:
        self.consumed = Consumed()
        self._counter = count
        self._pets = {number: self._item(number) for number in range(1, count + 1)}
        self._ids: dict[str | None, list[int]] = {None: list(self._pets)}
        for place, status in enumerate(STATUSES):
            self._ids[status] = list(range(1 + place, count + 1, len(STATUSES)))
        self._key_hash = hashlib.sha256(api_key.encode()).hexdigest()
        self._canned: dict[tuple[str, bytes], tuple[bytes, float]] = {}

    @staticmethod
    def name_of(number: int) -> str:
        """Name the animal with this id."""
        return f"Animal number {number}"

    @classmethod
    def _item(cls, number: int) -> Item:
        return {
            "pk": {"S": "pet"},
            "id": {"N": str(number)},
            "name": {"S": cls.name_of(number)},
            "categoryId": {"N": str(number % 12)},
            "status": {"S": STATUSES[(number - 1) % len(STATUSES)]},
            "token": {"S": hashlib.sha256(str(number).encode()).hexdigest()[:32]},
        }

    def answer(self, target: str, body: bytes) -> bytes:
        """Answer one request.

        Args:
            target: The `X-Amz-Target` header.
            body: The request body, DynamoDB's JSON.

        Raises:
            UnknownRequestError: The request is of a kind that no measured function should send.
        """
        operation = target.rpartition(".")[2]
        self.consumed.requests += 1
        if operation in ("UpdateItem", "PutItem"):
            self._canned.clear()
            method = self._update_item if operation == "UpdateItem" else self._put_item
            return json.dumps(method(json.loads(body))).encode()
        if (operation, body) not in self._canned:
            before = self.consumed.read_units
            methods = {"GetItem": self._get_item, "Query": self._query}
            if operation not in methods:
                raise UnknownRequestError(target)
            answer = json.dumps(methods[operation](json.loads(body)), separators=(",", ":")).encode()
            self._canned[operation, body] = answer, self.consumed.read_units - before
            return answer
        # The same bytes as before: the answer is ready, so that the measured program is not kept waiting.
        answer, units = self._canned[operation, body]
        self.consumed.read_units += units
        return answer

    def _get_item(self, request: dict[str, Any]) -> dict[str, Any]:
        key = request["Key"]
        item: Item | None
        if "hash" in key:
            known = key["hash"]["S"] == self._key_hash
            item = {**key, "label": {"S": "benchmark"}, "created": {"N": "1796472000"}} if known else None
        elif key["pk"]["S"] == "pet":
            item = self._pets.get(int(key["id"]["N"]))
        else:
            raise UnknownRequestError(f"GetItem {key}")
        self._read(_size(item) if item else 0, request)
        return {"Item": item} if item else {}

    def _query(self, request: dict[str, Any]) -> dict[str, Any]:
        partition, after = self._range(request)
        index = request.get("IndexName")
        if unknown := request.keys() & {"FilterExpression", "ScanIndexForward", "Select", "ProjectionExpression"}:
            raise UnknownRequestError(f"Query with {unknown}")
        if index not in (None, "by-status") or (index is None and partition != "pet"):
            raise UnknownRequestError(f"Query of {partition} through {index}")
        ids = self._ids[partition if index else None]
        start = bisect_right(ids, after)
        page = ids[start : start + request["Limit"]]
        items = [self._pets[number] for number in page]
        self._read(sum(map(_size, items)), request)
        answer: dict[str, Any] = {"Items": items, "Count": len(items), "ScannedCount": len(items)}
        if len(items) == request["Limit"]:
            names = ("pk", "id", "status") if index else ("pk", "id")
            answer["LastEvaluatedKey"] = {name: items[-1][name] for name in names}
        return answer

    @staticmethod
    def _range(request: dict[str, Any]) -> tuple[str, int]:
        """Read the partition, and the id after which the page starts, out of a key condition."""
        names = request.get("ExpressionAttributeNames", {})
        values = request["ExpressionAttributeValues"]
        match = _CONDITION.fullmatch(request["KeyConditionExpression"])
        if match is None:
            raise UnknownRequestError(request["KeyConditionExpression"])
        partition_name, partition, sort_name, after = match.groups()
        expected = "status" if "IndexName" in request else "pk"
        if names.get(partition_name, partition_name) != expected or names.get(sort_name, sort_name) not in (None, "id"):
            raise UnknownRequestError(request["KeyConditionExpression"])
        starts = [int(values[after]["N"])] if after else []
        if "ExclusiveStartKey" in request:
            starts.append(int(request["ExclusiveStartKey"]["id"]["N"]))
        return values[partition]["S"], max(starts, default=0)

    def _update_item(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["Key"] != {"pk": {"S": "counter"}, "id": {"N": "0"}}:
            raise UnknownRequestError(f"UpdateItem {request['Key']}")
        self._counter += 1
        value = {"value": {"N": str(self._counter)}}
        self._write({**request["Key"], **value})
        return {"Attributes": value}

    def _put_item(self, request: dict[str, Any]) -> dict[str, Any]:
        item: Item = request["Item"]
        number = int(item["id"]["N"])
        if item["pk"] != {"S": "pet"} or number in self._pets:
            raise UnknownRequestError(f"PutItem {item}")
        self._pets[number] = item
        insort(self._ids[None], number)
        self._write(item)
        if "status" in item:
            insort(self._ids[item["status"]["S"]], number)
            self._write(item)  # once more: the index has all attributes
        return {}

    def _read(self, size: int, request: dict[str, Any]) -> None:
        units = max(1, math.ceil(size / _READ_UNIT_BYTES))
        self.consumed.read_units += units if request.get("ConsistentRead") else units / 2

    def _write(self, item: Item) -> None:
        self.consumed.write_units += math.ceil(_size(item) / _WRITE_UNIT_BYTES)


def _size(item: Item) -> int:
    """Compute the size of an item in bytes: names and texts in UTF-8, a number one byte per two digits and one more."""
    size = 0
    for name, value in item.items():
        (kind, content), *_ = value.items()
        if kind == "N":
            size += (
                len(name.encode()) + math.ceil(len(content.lstrip("-").strip("0")) / 2) + 1 + content.startswith("-")
            )
        else:
            size += len(name.encode()) + len(content.encode())
    return size
