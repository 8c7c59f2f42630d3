"""Performs the operations of the local DynamoDB, each within one SQLite transaction.

The hash key of a table must be a string. If a table has a range key, this range key must be a
64-bit integer, and must also be the range key of the table's indexes.

Some differences from DynamoDB, besides what is not supported:
- An item whose index key is empty, NULL or of another type is stored, not refused.
- An update may change a key, and a key may have further attributes.
- An expression may contain reserved words. Amazon's DynamoDB Local refuses them, and a test runs
  the contract suite against it.
- A transaction may contain an item twice. With the same ClientRequestToken, it is executed again.
"""

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tools.local.expressions import (
    ConditionFailed,
    DynamoDBError,
    Expressions,
    Item,
    unsupported,
)

Execute = Callable[..., sqlite3.Cursor]
Request = dict[str, Any]
Response = dict[str, Any]

SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
    table_name TEXT, index_name TEXT, attributes TEXT, PRIMARY KEY (table_name, index_name)
) STRICT;
CREATE TABLE IF NOT EXISTS items (
    table_name TEXT, hash TEXT, range INTEGER, item TEXT,
    PRIMARY KEY (table_name, hash, range)
) STRICT, WITHOUT ROWID;
"""
# With this index in SQLite, a query reads only the items that it returns.
_CREATE_INDEX = """
CREATE INDEX IF NOT EXISTS "{index}" ON items (table_name, item ->> '{path}', range, hash)
"""
_QUERY = """
SELECT item FROM items WHERE table_name = ? AND item ->> '{path}' = ? AND range > ?
ORDER BY range, hash LIMIT ?
"""
_CONDITION_FAILED = "ConditionalCheckFailed"


@dataclass
class _Call:
    """One request. Each public method performs an operation and returns the response's body."""

    execute: Execute
    operation: str
    request: Request

    def create_table(self) -> Response:
        """Record the keys of a table and of its indexes; an existing table keeps its items."""
        insert = "INSERT OR REPLACE INTO keys VALUES (?, ?, ?)"
        for index in [self.request, *self.request.get("GlobalSecondaryIndexes", [])]:
            attributes = [key["AttributeName"] for key in index["KeySchema"]]
            name, path = index.get("IndexName", ""), f"$.{attributes[0]}.S"
            self.execute(insert, (self._table, name, json.dumps(attributes)))
            create_index = _CREATE_INDEX.format(
                index=f"{self._table}/{name}", path=path
            )
            self.execute(create_index)
        return {"TableDescription": self.request}

    def get_item(self) -> Response:
        item = self._read(self._primary_key(self.request["Key"]))
        return {"Item": item} if item else {}

    def write_item(self) -> Response:
        """Put or update an item if the request's condition holds."""
        item = self.request.get("Key") or self.request["Item"]
        key = self._primary_key(item)
        expressions, old = Expressions(self.request), self._read(key)
        if not expressions.condition_holds(old):
            return_values = self.request.get("ReturnValuesOnConditionCheckFailure")
            members = {"Item": old} if old and return_values == "ALL_OLD" else {}
            message = "The conditional request failed"
            raise ConditionFailed(message, f"{_CONDITION_FAILED}Exception", **members)
        changes = expressions.changes(old)
        kept = old if self.operation == "UpdateItem" else {}
        new = item | kept | changes
        replace = "INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?)"
        self.execute(replace, (*key, json.dumps(new)))
        match self.request.get("ReturnValues"):
            case None:
                return {}
            case "UPDATED_NEW":
                return {"Attributes": changes}
            case value:
                raise unsupported(f"the value {value} of ReturnValues")

    def transact_write_items(self) -> Response:
        reasons = []
        for action in self.request["TransactItems"]:
            ((name, request),) = action.items()
            reason = {"Code": "None"}
            try:
                perform(self.execute, f"{name}Item", request)
            except ConditionFailed as failure:
                reason = {"Code": _CONDITION_FAILED, "Message": failure.message}
                reason |= failure.members
            reasons.append(reason)
        codes = [reason["Code"] for reason in reasons]
        if _CONDITION_FAILED in codes:
            message = f"Transaction cancelled: {codes}"
            code = "TransactionCanceledException"
            raise DynamoDBError(message, code, CancellationReasons=reasons)
        return {}

    def query(self) -> Response:
        """Return at most `Limit` items. DynamoDB also ends a page at 1 MB; this store does not."""
        index, limit = self.request.get("IndexName", ""), self.request.get("Limit", -1)
        if index and self.request.get("ConsistentRead"):
            raise DynamoDBError("Consistent reads are not supported on global indexes")
        condition = Expressions(self.request).key_condition()
        keys = self._key_attributes(index)
        if [*condition] != keys:
            raise DynamoDBError(f"Query condition missed key schema element: {keys}")
        ((value_type, value),) = condition[keys[0]].items()
        after = int(condition[keys[1]]["N"])
        select = _QUERY.format(path=f"$.{keys[0]}.{value_type}")
        rows = self.execute(select, (self._table, value, after, limit))
        items = [json.loads(item) for (item,) in rows]
        page = {"Items": items, "Count": len(items)}
        if len(items) == limit:
            names = {*keys, *self._key_attributes()}
            page["LastEvaluatedKey"] = {name: items[-1][name] for name in names}
        return page

    def scan(self) -> Response:
        select = "SELECT item FROM items WHERE table_name = ? ORDER BY hash, range"
        rows = self.execute(select, (self._table,))
        return {"Items": [json.loads(item) for (item,) in rows]}

    @property
    def _table(self) -> str:
        return str(self.request["TableName"])

    def _key_attributes(self, index: str = "") -> list[str]:
        """Return the names of the keys of the request's table, or of one of the table's indexes."""
        select = "SELECT attributes FROM keys WHERE (table_name, index_name) = (?, ?)"
        row = self.execute(select, (self._table, index)).fetchone()
        if row is None:
            message = f"There is no table {self._table} with the index {index!r}"
            raise DynamoDBError(message, "ResourceNotFoundException")
        keys: list[str] = json.loads(row[0])
        return keys

    def _primary_key(self, item: Item) -> tuple[str, str, int]:
        """Return an item's table, hash key and range key (0 if the table has no range key)."""
        match [item.get(name) for name in self._key_attributes()]:
            case [{"S": text}]:
                return self._table, text, 0
            case [{"S": text}, {"N": number}]:
                return self._table, text, int(number)
        raise DynamoDBError(f"{item} lacks a key of {self._key_attributes()}")

    def _read(self, primary_key: tuple[str, str, int]) -> Item:
        """Return the item with a key, or `{}` if no item has the key."""
        select = "SELECT item FROM items WHERE (table_name, hash, range) = (?, ?, ?)"
        row = self.execute(select, primary_key).fetchone()
        item: Item = json.loads(row[0]) if row else {}
        return item


_OPERATIONS = {
    "CreateTable": _Call.create_table,
    "GetItem": _Call.get_item,
    "PutItem": _Call.write_item,
    "Query": _Call.query,
    "Scan": _Call.scan,
    "TransactWriteItems": _Call.transact_write_items,
    "UpdateItem": _Call.write_item,
}
READS = {"GetItem", "Query", "Scan"}
"""The operations that change nothing."""
_PARAMETERS = {
    "AttributeDefinitions",
    "BillingMode",
    "ClientRequestToken",
    "ConditionExpression",
    "ConsistentRead",
    "ExpressionAttributeNames",
    "ExpressionAttributeValues",
    "GlobalSecondaryIndexes",
    "IndexName",
    "Item",
    "Key",
    "KeyConditionExpression",
    "KeySchema",
    "Limit",
    "ReturnValues",
    "ReturnValuesOnConditionCheckFailure",
    "TableName",
    "TransactItems",
    "UpdateExpression",
}


def perform(execute: Execute, operation: str, request: Request) -> Response:
    """Perform a request within the caller's transaction, and return the response's body."""
    if operation not in _OPERATIONS:
        raise unsupported(f"the operation {operation}")
    for name in request.keys() - _PARAMETERS:
        raise unsupported(f"the parameter {name} of {operation}")
    return _OPERATIONS[operation](_Call(execute, operation, request))
