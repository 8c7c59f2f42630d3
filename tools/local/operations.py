"""The operations of the embedded DynamoDB, and the parameters that each knows."""

import json
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from tools.local.expressions import Expressions, Item, Refusal, known, order, unknown

Execute = Callable[..., sqlite3.Cursor]
Request = dict[str, Any]
Response = dict[str, Any]

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
_MAX_KEY = 2048
_FAILED = "ConditionalCheckFailed"
_AFTER = b"\xff"


class _Index(NamedTuple):
    """The index of a table, or the table itself: rows in the order of their places."""

    begin: bytes
    keys: tuple[str, ...]
    names: tuple[str, ...]  # the keys, and then the table's
    types: dict[str, str]

    def place(self, item: Item) -> bytes:
        """Return an item's place; given only part of the key, where the items with it begin."""
        place = self.begin
        # Then the attributes, each ended by a zero byte; none begins with `_AFTER`.
        for name in self.names:
            if name in item:
                expected = self.types[name]
                part = order(item[name]) if expected in item[name] else b""
                if not 0 < len(part) <= _MAX_KEY:
                    raise Refusal(
                        f"The key {name} must be a {expected} of 1 to {_MAX_KEY} bytes"
                    )
                place += part.replace(b"\0", b"\0" + _AFTER) + b"\0"
        return place


_Indexes = dict[str | None, _Index]


@lru_cache
def _read_indexes(number: int, description: str) -> _Indexes:
    """Return the indexes of a table by their names; None is the name of the table itself."""
    table = json.loads(description)
    types = {
        each["AttributeName"]: each["AttributeType"]
        for each in table["AttributeDefinitions"]
    }
    indexes: _Indexes = {}
    of_table: tuple[str, ...] = ()
    for described in (table, *table.get("GlobalSecondaryIndexes", [])):
        name = described.get("IndexName")
        keys = tuple(key["AttributeName"] for key in described["KeySchema"])
        names = tuple(dict.fromkeys(keys + of_table))
        indexes[name] = _Index(f"{number}\0{name or ''}\0".encode(), keys, names, types)
        of_table = of_table or keys
    return indexes


def _places(indexes: _Indexes, item: Item) -> list[bytes]:
    """Return an item's place in each index; one omits it if it lacks a part of the key."""
    return [
        index.place(item) for index in indexes.values() if {*index.names} <= item.keys()
    ]


@dataclass
class _Call:
    """One call, within its transaction; each operation returns the body of the response."""

    execute: Execute
    request: Request
    action: str  # what a write does: its name in a transaction

    def get_item(self) -> Response:
        item = self._read()
        return {"Item": item} if item else {}

    def write_item(self) -> Response:
        """Put, update or delete an item, if the condition holds."""
        item = known(self.request["Item" if self.action == "Put" else "Key"])
        indexes, old = self._indexes, self._read()
        # Refuses a key of the wrong type before the condition is tested.
        _places(indexes, item)
        expressions = Expressions(self.request)
        # What is wrong with the update itself, whatever is stored, comes before the condition.
        expressions.changes(item)
        if not expressions.condition(old):
            shown = self.request.get("ReturnValuesOnConditionCheckFailure")
            members = {"Item": old} if old and shown == "ALL_OLD" else {}
            raise Refusal(
                "The conditional request failed", f"{_FAILED}Exception", **members
            )
        changes = expressions.changes(item | old)
        if fixed := changes.keys() & {*indexes[None].keys}:
            raise Refusal(
                f"Cannot update attribute {fixed.pop()}. This attribute is part of the key"
            )
        results = {"Put": item, "Update": item | old | changes, "Delete": {}}
        new = results[self.action]
        for place in _places(indexes, old):
            self.execute("DELETE FROM rows WHERE place = ?", (place,))
        for place in _places(indexes, new):
            self.execute("INSERT INTO rows VALUES (?, ?)", (place, json.dumps(new)))
        returned = {"ALL_NEW": new, "UPDATED_NEW": changes}
        attributes = returned.get(self.request.get("ReturnValues", ""))
        return {"Attributes": attributes} if attributes else {}

    def transact_write_items(self) -> Response:
        actions = self.request["TransactItems"]
        if self._is_repeated(json.dumps(actions, sort_keys=True)):
            return {}
        calls = []
        for action in actions:
            _check_parameters("TransactItems", action)
            ((name, request),) = action.items()
            _check_parameters(name, request)
            calls.append(_Call(self.execute, request, name))
        if len({call.place() for call in calls}) < len(calls):
            raise Refusal(
                "Transaction request cannot include multiple operations on one item"
            )
        reasons = [call.cancellation_reason() for call in calls]
        codes = [reason["Code"] for reason in reasons]
        if _FAILED in codes:
            message = f"Transaction cancelled: {codes}"
            code = "TransactionCanceledException"
            raise Refusal(message, code, CancellationReasons=reasons)
        return {}

    def cancellation_reason(self) -> Response:
        """Write an item of a transaction; return why that cancels it, or the code None."""
        try:
            self.write_item()
        except Refusal as refusal:
            if not refusal.code.startswith(_FAILED):
                raise
            return {"Code": _FAILED, "Message": refusal.message, **refusal.members}
        return {"Code": "None"}

    def query(self) -> Response:
        name, indexes = self.request.get("IndexName"), self._indexes
        if name and self.request.get("ConsistentRead"):
            raise Refusal(
                "Consistent reads are not supported on global secondary indexes"
            )
        if name not in indexes:
            raise Refusal(f"The table does not have the specified index: {name}")
        index = indexes[name]
        conditions = Expressions(self.request).key_conditions(index.keys)
        hash_key = index.keys[0]
        begin = index.place({hash_key: conditions[hash_key]})
        after = index.place(conditions) + _AFTER if len(conditions) > 1 else begin
        return self._page(index, after, begin + _AFTER)

    def scan(self) -> Response:
        table = self._indexes[None]
        return self._page(table, table.begin, table.begin + _AFTER)

    def create_table(self) -> Response:
        for index in self.request.get("GlobalSecondaryIndexes", []):
            _check_parameters("GlobalSecondaryIndexes", index)
        name = self.request["TableName"]
        insert = "INSERT OR IGNORE INTO tables (name, description) VALUES (?, ?)"
        if not self.execute(insert, (name, json.dumps(self.request))).rowcount:
            raise Refusal(f"Table already exists: {name}", "ResourceInUseException")
        return {"TableDescription": self.request}

    def place(self) -> bytes:
        """Return the place of the item that the request names."""
        table = self._indexes[None]
        key: Item = self.request.get("Key") or {
            name: self.request["Item"].get(name, {}) for name in table.keys
        }
        if key.keys() != {*table.keys}:
            raise Refusal("The provided key element does not match the schema")
        return table.place(known(key))

    @cached_property
    def _indexes(self) -> _Indexes:
        found = "SELECT id, description FROM tables WHERE name = ?"
        row = self.execute(found, (self.request["TableName"],)).fetchone()
        if row is None:
            raise Refusal("Requested resource not found", "ResourceNotFoundException")
        return _read_indexes(*row)

    def _read(self) -> Item:
        """Read the item that the request names; it is empty if there is none."""
        found = "SELECT item FROM rows WHERE place = ?"
        row = self.execute(found, (self.place(),)).fetchone()
        item: Item = json.loads(row[0]) if row else {}
        return item

    def _page(self, index: _Index, low: bytes, high: bytes) -> Response:
        """Read items from `low` to before `high`, up to the limit; DynamoDB also stops at 1 MB."""
        is_backwards = not self.request.get("ScanIndexForward", True)
        if "ExclusiveStartKey" in self.request:
            key = self.request["ExclusiveStartKey"]
            start = index.place(known(key))
            if key.keys() != {*index.names} or not low <= start < high:
                raise Refusal(
                    "The provided starting key is invalid, or outside the query"
                )
            low, high = (low, start) if is_backwards else (start + _AFTER, high)
        limit = self.request.get("Limit", -1)
        found = "SELECT item FROM rows WHERE place >= ? AND place < ? ORDER BY place"
        direction = " DESC" if is_backwards else ""
        rows = self.execute(f"{found}{direction} LIMIT ?", (low, high, limit))
        items = [json.loads(text) for (text,) in rows]
        page = {"Items": items, "Count": len(items), "ScannedCount": len(items)}
        if len(items) == limit:
            page["LastEvaluatedKey"] = {name: items[-1][name] for name in index.names}
        return page

    def _is_repeated(self, content: str) -> bool:
        """Tell whether a transaction with this token was carried out; remember it if not."""
        now, token = time.time(), self.request.get("ClientRequestToken")
        self.execute("DELETE FROM tokens WHERE expires <= ?", (now,))
        insert = "INSERT OR IGNORE INTO tokens VALUES (?, ?, ?)"
        # To SQLite, no two missing tokens are equal.
        if self.execute(insert, (token, content, now + 10 * 60)).rowcount:
            return False
        found = "SELECT content FROM tokens WHERE token = ?"
        if self.execute(found, (token,)).fetchone() != (content,):
            raise Refusal(
                "The token belongs to another transaction",
                "IdempotentParameterMismatchException",
            )
        return True


READS = {"GetItem", "Query", "Scan"}
_EXPRESSIONS = "ExpressionAttributeNames ExpressionAttributeValues"
_WRITE = (
    "TableName ConditionExpression ReturnValuesOnConditionCheckFailure " + _EXPRESSIONS
)
_PAGE = "TableName ConsistentRead Limit ExclusiveStartKey"
# The parameters of each operation, and of what a transaction or a table is made of.
_PARAMETERS = {
    "GetItem": "TableName Key ConsistentRead",
    "PutItem": "Item " + _WRITE,
    "UpdateItem": "Key UpdateExpression ReturnValues " + _WRITE,
    "DeleteItem": "Key " + _WRITE,
    "TransactWriteItems": "TransactItems ClientRequestToken",
    "TransactItems": "Put Update Delete",
    "Put": "Item " + _WRITE,
    "Update": "Key UpdateExpression " + _WRITE,
    "Delete": "Key " + _WRITE,
    "Query": f"IndexName KeyConditionExpression ScanIndexForward {_EXPRESSIONS} {_PAGE}",
    "Scan": _PAGE,
    "CreateTable": "TableName AttributeDefinitions KeySchema GlobalSecondaryIndexes BillingMode",
    "GlobalSecondaryIndexes": "IndexName KeySchema Projection",
}
# Not every value of these parameters is supported.
_VALUES: dict[str, list[Any]] = {
    "ReturnValues": ["NONE", "ALL_NEW", "UPDATED_NEW"],
    "ReturnValuesOnConditionCheckFailure": ["NONE", "ALL_OLD"],
    "Projection": [{"ProjectionType": "ALL"}],
}
_OPERATIONS: dict[str, Callable[[_Call], Response]] = {
    "GetItem": _Call.get_item,
    "PutItem": _Call.write_item,
    "UpdateItem": _Call.write_item,
    "DeleteItem": _Call.write_item,
    "TransactWriteItems": _Call.transact_write_items,
    "Query": _Call.query,
    "Scan": _Call.scan,
    "CreateTable": _Call.create_table,
}


def perform(execute: Execute, operation: str, request: Request) -> Response:
    """Carry out a request and return the body of the response. The caller begins a transaction."""
    if operation not in _OPERATIONS:
        raise unknown(f"the operation {operation}")
    _check_parameters(operation, request)
    call = _Call(execute, request, operation.removesuffix("Item"))
    return _OPERATIONS[operation](call)


def _check_parameters(of: str, request: Request) -> None:
    allowed = _PARAMETERS[of].split()
    for name, value in request.items():
        if name not in allowed or value not in _VALUES.get(name, [value]):
            raise unknown(f"the parameter {name} of {of}, or its value")
