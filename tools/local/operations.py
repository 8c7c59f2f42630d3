"""The operations of the local DynamoDB, and the parameters that each knows.

A table has a text as hash key and, if any, an integer of 64 bits as range key.
"""

import json
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from tools.local.expressions import Expressions, Item, Refusal, known, unknown

Execute = Callable[..., sqlite3.Cursor]
Request = dict[str, Any]
Response = dict[str, Any]

# As in DynamoDB, an index has rows of its own, each with the whole item. The table is an index too.
SCHEMA = """
CREATE TABLE tables (place TEXT PRIMARY KEY, description TEXT) STRICT;
CREATE TABLE rows (
    place TEXT, hash TEXT, range INTEGER, own_hash TEXT, own_range INTEGER, item TEXT,
    PRIMARY KEY (place, hash, range, own_hash, own_range)
) STRICT, WITHOUT ROWID;
CREATE TABLE tokens (token TEXT UNIQUE, content TEXT, expires REAL) STRICT;
CREATE INDEX tokens_by_expiry ON tokens (expires);
"""
_DELETE = """
DELETE FROM rows
WHERE (place, hash, range, own_hash, own_range) = (?, ?, ?, ?, ?)
"""
_INSERT = "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)"
_QUERY = """
SELECT item FROM rows WHERE place = ? AND hash = ? AND range > ?
ORDER BY range, own_hash, own_range LIMIT ?
"""
_SCAN = "SELECT item FROM rows WHERE place = ? ORDER BY hash, range LIMIT ?"
_LEAST = -(2**63)
_FAILED = "ConditionalCheckFailed"


class _Keys(NamedTuple):
    """The attributes of a key; not every table has a range key."""

    hash: str
    range: str = ""

    def read(self, item: Item) -> tuple[str, int]:
        """Read the key of an item; 0 stands for the missing range key of a table."""
        number = item.get(self.range) if self.range else {"N": "0"}
        match item.get(self.hash), number:
            case {"S": text}, {"N": digits} if text and abs(int(digits)) < -_LEAST:
                return text, int(digits)
        raise Refusal(f"Not a text that is not empty, and an int64: {item}")


@lru_cache
def _read_keys(description: str) -> dict[str, _Keys]:
    """Return the key of a table and those of its indexes, by their places."""
    table = json.loads(description)
    keys = {}
    for index in (table, *table.get("GlobalSecondaryIndexes", [])):
        place = f"{table['TableName']}/{index.get('IndexName', '')}"
        keys[place] = _Keys(*(key["AttributeName"] for key in index["KeySchema"]))
    return keys


@dataclass
class _Call:
    """A call, within its transaction; each operation returns the body of the response."""

    execute: Execute
    operation: str
    request: Request

    def create_table(self) -> Response:
        """Create a table, or find the same one."""
        insert = "INSERT OR IGNORE INTO tables VALUES (?, ?)"
        description = json.dumps(self.request)
        self.execute(insert, (self._place, description))
        if self._keys != _read_keys(description):
            raise Refusal(f"{self._place} has other keys or indexes: make reset")
        return {"TableDescription": self.request}

    def get_item(self) -> Response:
        item = self._read(self.request["Key"])
        return {"Item": item} if item else {}

    def write_item(self) -> Response:
        """Put, update or delete an item, if the condition holds."""
        item = known(self.request.get("Key") or self.request["Item"])
        expressions, old = Expressions(self.request), self._read(item)
        if not expressions.condition_holds(old):
            shown = self.request.get("ReturnValuesOnConditionCheckFailure")
            members = {"Item": old} if old and shown == "ALL_OLD" else {}
            message = "The conditional request failed"
            raise Refusal(message, f"{_FAILED}Exception", **members)
        changes = expressions.changes(old)
        if changes.keys() & {*self._table_keys}:
            raise Refusal("Cannot update attribute. This attribute is part of the key")
        results = {"PutItem": item, "UpdateItem": item | old | changes}
        new = results.get(self.operation, {})
        for place in self._places(old):
            self.execute(_DELETE, place)
        for place in self._places(new):
            self.execute(_INSERT, (*place, json.dumps(new)))
        returned = {"ALL_NEW": new, "UPDATED_NEW": changes}
        attributes = returned.get(self.request.get("ReturnValues", ""))
        return {"Attributes": attributes} if attributes else {}

    def transact_write_items(self) -> Response:
        if self._is_repeated():
            return {}
        reasons = []
        for action in self.request["TransactItems"]:
            ((name, request),) = action.items()
            reason = {"Code": "None"}
            try:
                perform(self.execute, f"{name}Item", request)
            except Refusal as refusal:
                if not refusal.code.startswith(_FAILED):
                    raise
                reason = {"Code": _FAILED, **refusal.members}
            reasons.append(reason)
        codes = [reason["Code"] for reason in reasons]
        if _FAILED in codes:
            message = f"Transaction cancelled: {codes}"
            code = "TransactionCanceledException"
            raise Refusal(message, code, CancellationReasons=reasons)
        return {}

    def _is_repeated(self) -> bool:
        """Tell whether a transaction with this token was carried out; remember it if not."""
        now, token = time.time(), self.request.get("ClientRequestToken")
        content = json.dumps(self.request)
        self.execute("DELETE FROM tokens WHERE expires <= ?", (now,))
        insert = "INSERT OR IGNORE INTO tokens VALUES (?, ?, ?)"
        # To SQLite, no two missing tokens are equal.
        if self.execute(insert, (token, content, now + 10 * 60)).rowcount:
            return False
        select = "SELECT content FROM tokens WHERE token = ?"
        if self.execute(select, (token,)).fetchone() != (content,):
            code = "IdempotentParameterMismatchException"
            raise Refusal("The token belongs to another transaction", code)
        return True

    def query(self) -> Response:
        place = self._place + self.request.get("IndexName", "")
        if place not in self._keys:
            raise Refusal(f"The table does not have the specified index: {place}")
        if place != self._place and self.request.get("ConsistentRead"):
            raise Refusal("Consistent reads are not supported on global indexes")
        condition, keys = Expressions(self.request).key_condition(), self._keys[place]
        if (*condition,) not in (keys, (keys.hash,)):
            raise Refusal(f"Query condition missed key schema element: {keys}")
        text, after = keys.read({keys.range: {"N": "0"}} | condition)
        if keys.range not in condition:
            after = _LEAST
        return self._page(_QUERY, place, text, after)

    def scan(self) -> Response:
        return self._page(_SCAN, self._place)

    def _page(self, select: str, place: str, *values: object) -> Response:
        """Read rows up to the limit; DynamoDB also stops at 1 MB."""
        keys, limit = self._keys[place], self.request.get("Limit", -1)
        rows = self.execute(select, (place, *values, limit))
        items = [json.loads(text) for (text,) in rows]
        page = {"Items": items, "Count": len(items)}
        if len(items) == limit:
            names = {*keys, *self._table_keys} & items[-1].keys()
            page["LastEvaluatedKey"] = {name: items[-1][name] for name in names}
        return page

    @cached_property
    def _place(self) -> str:
        return f"{self.request['TableName']}/"

    @cached_property
    def _keys(self) -> dict[str, _Keys]:
        select = "SELECT description FROM tables WHERE place = ?"
        row = self.execute(select, (self._place,)).fetchone()
        if row is None:
            raise Refusal("Requested resource not found", "ResourceNotFoundException")
        return _read_keys(*row)

    @cached_property
    def _table_keys(self) -> _Keys:
        return self._keys[self._place]

    def _read(self, key: Item) -> Item:
        """Read the item with a key; it is empty if there is none."""
        select = "SELECT item FROM rows WHERE (place, hash, range) = (?, ?, ?)"
        place = (self._place, *self._table_keys.read(key))
        row = self.execute(select, place).fetchone()
        item: Item = json.loads(row[0]) if row else {}
        return item

    def _places(self, item: Item) -> list[tuple[object, ...]]:
        """Return an item's places in the table and in the indexes whose keys it has."""
        return [
            (place, *keys.read(item), *self._table_keys.read(item))
            for place, keys in self._keys.items()
            if {*keys} <= {"", *item}
        ]


_EXPRESSION_PARAMETERS = {"ExpressionAttributeNames", "ExpressionAttributeValues"}
_WRITE_PARAMETERS = {
    "TableName",
    "ConditionExpression",
    "ReturnValuesOnConditionCheckFailure",
    *_EXPRESSION_PARAMETERS,
}
_PAGE_PARAMETERS = {"TableName", "ConsistentRead", "Limit"}
# The method that carries out each operation, and the parameters that it knows.
_OPERATIONS = {
    "GetItem": (_Call.get_item, {"TableName", "Key", "ConsistentRead"}),
    "PutItem": (_Call.write_item, {"Item", *_WRITE_PARAMETERS}),
    "UpdateItem": (
        _Call.write_item,
        {"Key", "UpdateExpression", "ReturnValues", *_WRITE_PARAMETERS},
    ),
    "DeleteItem": (_Call.write_item, {"Key", *_WRITE_PARAMETERS}),
    "TransactWriteItems": (
        _Call.transact_write_items,
        {"TransactItems", "ClientRequestToken"},
    ),
    "Query": (
        _Call.query,
        {
            "IndexName",
            "KeyConditionExpression",
            *_EXPRESSION_PARAMETERS,
            *_PAGE_PARAMETERS,
        },
    ),
    "Scan": (_Call.scan, _PAGE_PARAMETERS),
    "CreateTable": (
        _Call.create_table,
        {
            "TableName",
            "AttributeDefinitions",
            "KeySchema",
            "GlobalSecondaryIndexes",
            "BillingMode",
        },
    ),
}
READS = {"GetItem", "Query", "Scan"}
_SUPPORTED_VALUES = {
    "ReturnValues": {"NONE", "ALL_NEW", "UPDATED_NEW"},
    "ReturnValuesOnConditionCheckFailure": {"NONE", "ALL_OLD"},
}


def perform(execute: Execute, operation: str, request: Request) -> Response:
    """Carry out a request and return the body of the response. A write needs a transaction."""
    if operation not in _OPERATIONS:
        raise unknown(f"the operation {operation}")
    carry_out, parameters = _OPERATIONS[operation]
    for name, value in request.items():
        values = _SUPPORTED_VALUES.get(name)
        if name not in parameters or (values and value not in values):
            raise unknown(f"the parameter {name} of {operation}, or its value {value}")
    return carry_out(_Call(execute, operation, request))
