"""The operations of the embedded DynamoDB, and the parameters that each knows."""

import json
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any

from lambda_local.expressions import Expressions, Item, Refusal, known, order, unknown

Execute = Callable[..., sqlite3.Cursor]
Request = dict[str, Any]

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
_MAX_KEY = 2048
_FAILED = "ConditionalCheckFailedException"
_AFTER = b"\xff"
_READ = "SELECT item FROM rows WHERE place = ?"
_json = partial(json.dumps, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class _Index:
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
                part = order(item[name]) if item[name].keys() == {self.types[name]} else b""
                if not 0 < len(part) <= _MAX_KEY:
                    raise Refusal(
                        f"The key {name} must be a {self.types[name]} of 1 to {_MAX_KEY} bytes"
                    )
                place += part.replace(b"\0", b"\0" + _AFTER) + b"\0"
        return place

    def row(self, item: Item) -> bytes | None:
        """Return the place of an item; None if it lacks a part of the key: the index omits it."""
        return self.place(item) if {*self.names} <= item.keys() else None


@lru_cache
def _read_indexes(number: int, description: str) -> dict[str | None, _Index]:
    """Return the indexes of a table by their names; None is the name of the table itself."""
    table = json.loads(description)
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    indexes: dict[str | None, _Index] = {}
    for described in (table, *table.get("GlobalSecondaryIndexes", [])):
        name = described.get("IndexName")
        keys = tuple(key["AttributeName"] for key in described["KeySchema"])
        names = tuple(dict.fromkeys(keys + (indexes[None].keys if indexes else ())))
        indexes[name] = _Index(f"{number}\0{name or ''}\0".encode(), keys, names, types)
    return indexes


@dataclass(frozen=True, slots=True)
class _Call:
    """One call, within its transaction; each operation returns the body of the response."""

    execute: Execute
    request: Request
    action: str = ""  # what a write does: its name in a transaction

    def get_item(self) -> str:
        row = self.execute(_READ, (self.place(),)).fetchone()
        return f'{{"Item":{row[0]}}}' if row else "{}"

    def write_item(self) -> str:
        """Put, update or delete an item, if the condition holds."""
        item = known(self.request["Item" if self.action == "Put" else "Key"])
        indexes, place = self._indexes(), self.place()
        for index in indexes.values():
            # Refuses a key of the wrong type before the condition is tested.
            index.row(item)
        row = self.execute(_READ, (place,)).fetchone()
        old: Item = json.loads(row[0]) if row else {}
        expressions = Expressions(self.request)
        holds, changes = expressions.condition(old), expressions.changes(item | old)
        if not holds:
            is_shown = old and self.request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
            shown = {"Item": old} if is_shown else {}
            raise Refusal("The conditional request failed", _FAILED, **shown)
        if fixed := changes.keys() & {*indexes[None].keys}:
            message = f"Cannot update attribute {fixed.pop()}. This attribute is part of the key"
            raise Refusal(message)
        results = {"Put": item, "Update": item | old | changes, "Delete": {}}
        new = results[self.action]
        for index in indexes.values():
            before, after = index.row(old), index.row(new)
            if before != after:
                self.execute("DELETE FROM rows WHERE place = ?", (before,))
            if after:
                self.execute("REPLACE INTO rows VALUES (?, ?)", (after, _json(new)))
        returned = {"ALL_NEW": new, "UPDATED_NEW": changes}
        attributes = returned.get(self.request.get("ReturnValues", ""))
        return _json({"Attributes": attributes}) if attributes else "{}"

    def transact_write_items(self) -> str:
        actions = self.request["TransactItems"]
        # To SQLite, no two Nones are equal.
        token = self.request.get("ClientRequestToken")
        if self._is_repeated(token, sha256(json.dumps(actions, sort_keys=True).encode()).digest()):
            return "{}"
        calls = []
        for action in actions:
            _check_parameters("TransactWriteItems", {*_ACTIONS}, action)
            ((name, request),) = action.items()
            _check_parameters(name, _ACTIONS[name], request)
            calls.append(_Call(self.execute, request, name))
        if len({call.place() for call in calls}) < len(calls):
            raise Refusal("Transaction request cannot include multiple operations on one item")
        reasons = [call.cancellation_reason() for call in calls]
        codes = [reason["Code"] for reason in reasons]
        if {*codes} != {"None"}:
            message = f"Transaction cancelled: [{', '.join(codes)}]"
            raise Refusal(message, "TransactionCanceledException", CancellationReasons=reasons)
        return "{}"

    def cancellation_reason(self) -> dict[str, Any]:
        """Write an item as part of a transaction; return why that cancels it, or the code None."""
        try:
            self.write_item()
        except Refusal as refusal:
            if refusal.code != _FAILED:
                raise
            code = "ConditionalCheckFailed"
            return {"Code": code, "Message": refusal.message, **refusal.members}
        return {"Code": "None"}

    def query(self) -> str:
        if "IndexName" in self.request and self.request.get("ConsistentRead"):
            raise Refusal("Consistent reads are not supported on global secondary indexes")
        index = self._indexes()[self.request.get("IndexName")]
        conditions = Expressions(self.request).key_conditions(index.keys)
        hash_key = index.keys[0]
        begin, low = (index.place({hash_key: conditions[hash_key]}), index.place(conditions))
        return self._page(index, low + _AFTER if low != begin else begin, begin + _AFTER)

    def scan(self) -> str:
        table = self._indexes()[None]
        return self._page(table, table.begin, table.begin + _AFTER)

    def create_table(self) -> str:
        for index in self.request.get("GlobalSecondaryIndexes", []):
            _check_parameters(
                "GlobalSecondaryIndexes", {"IndexName", "KeySchema", "Projection"}, index
            )
        name, table = self.request["TableName"], _json(self.request)
        insert = "INSERT OR IGNORE INTO tables (name, description) VALUES (?, ?)"
        if not self.execute(insert, (name, table)).rowcount:
            raise Refusal(f"Table already exists: {name}", "ResourceInUseException")
        return f'{{"TableDescription":{table}}}'

    def _indexes(self) -> dict[str | None, _Index]:
        found = "SELECT id, description FROM tables WHERE name = ?"
        row = self.execute(found, (self.request["TableName"],)).fetchone()
        if row is None:
            raise Refusal("Requested resource not found", "ResourceNotFoundException")
        return _read_indexes(*row)

    def place(self) -> bytes:
        """Return the place of the item that the request names."""
        table = self._indexes()[None]
        key: Item = self.request.get("Key") or {
            name: self.request["Item"].get(name, {}) for name in table.keys
        }
        if key.keys() != {*table.keys}:
            raise Refusal("The provided key element does not match the schema")
        return table.place(known(key))

    def _page(self, index: _Index, low: bytes, high: bytes) -> str:
        """Read items from `low` to before `high`, up to the limit; DynamoDB also stops at 1 MB."""
        if "ExclusiveStartKey" in self.request:
            key = self.request["ExclusiveStartKey"]
            start = index.place(known(key))
            if key.keys() != {*index.names} or not low <= start < high:
                raise Refusal("The provided starting key is invalid, or outside the query")
            low = start + _AFTER
        limit, last = self.request.get("Limit", -1), ""
        statement = "SELECT item FROM rows WHERE place >= ? AND place < ? ORDER BY place LIMIT ?"
        items = [item for (item,) in self.execute(statement, (low, high, limit))]
        if len(items) == limit:
            end = json.loads(items[-1])
            last = f',"LastEvaluatedKey":{_json({name: end[name] for name in index.names})}'
        counts = f'"Count":{len(items)},"ScannedCount":{len(items)}'
        return f'{{"Items":[{",".join(items)}],{counts}{last}}}'

    def _is_repeated(self, token: str | None, content: bytes) -> bool:
        """Tell whether a transaction with this token has been carried out; remember it if not."""
        now = time.time()
        self.execute("DELETE FROM tokens WHERE expires <= ?", (now,))
        insert = "INSERT OR IGNORE INTO tokens VALUES (?, ?, ?)"
        if self.execute(insert, (token, content, now + 10 * 60)).rowcount:
            return False
        if (content,) not in self.execute("SELECT content FROM tokens WHERE token = ?", (token,)):
            raise Refusal(
                "The token belongs to another transaction", "IdempotentParameterMismatchException"
            )
        return True


READS = {"GetItem", "Query", "Scan"}
_EXPRESSIONS = {"ExpressionAttributeNames", "ExpressionAttributeValues"}
_WRITE = {"TableName", "ConditionExpression", "ReturnValuesOnConditionCheckFailure", *_EXPRESSIONS}
# What a transaction is made of; each is an operation too: PutItem, for instance.
_ACTIONS = {
    "Put": {"Item", *_WRITE},
    "Update": {"Key", "UpdateExpression", *_WRITE},
    "Delete": {"Key", *_WRITE},
}
_PAGE = {"TableName", "ConsistentRead", "Limit", "ExclusiveStartKey"}
_TABLE = {"TableName", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode"}
_OPERATIONS: dict[str, tuple[Callable[[_Call], str], set[str]]] = {
    "GetItem": (_Call.get_item, {"TableName", "Key", "ConsistentRead"}),
    "PutItem": (_Call.write_item, _ACTIONS["Put"]),
    "UpdateItem": (_Call.write_item, {"ReturnValues", *_ACTIONS["Update"]}),
    "DeleteItem": (_Call.write_item, _ACTIONS["Delete"]),
    "TransactWriteItems": (_Call.transact_write_items, {"TransactItems", "ClientRequestToken"}),
    "Query": (_Call.query, {"IndexName", "KeyConditionExpression", *_EXPRESSIONS, *_PAGE}),
    "Scan": (_Call.scan, _PAGE),
    "CreateTable": (_Call.create_table, _TABLE),
}
# Not every value of these parameters is supported.
_VALUES: dict[str, list[Any]] = {
    "ReturnValues": ["NONE", "ALL_NEW", "UPDATED_NEW"],
    "ReturnValuesOnConditionCheckFailure": ["NONE", "ALL_OLD"],
    "Projection": [{"ProjectionType": "ALL"}],
}


def perform(execute: Execute, operation: str, request: Request) -> str:
    """Carry out a request and return the body of the response. The caller begins a transaction."""
    if operation not in _OPERATIONS:
        raise unknown(f"the operation {operation}")
    method, parameters = _OPERATIONS[operation]
    _check_parameters(operation, parameters, request)
    return method(_Call(execute, request, operation.removesuffix("Item")))


def _check_parameters(operation: str, allowed: set[str], request: Request) -> None:
    for name, value in request.items():
        if name not in allowed or value not in _VALUES.get(name, [value]):
            raise unknown(f"the parameter {name} of {operation}, or its value")
