"""The operations of the embedded DynamoDB, and all that is known of their parameters, in a transaction of SQLite."""

import json
import sqlite3
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

from tools.local.expressions import Expressions
from tools.local.values import Item, Refusal, kind, normal, order, unknown

Request = dict[str, Any]
"""The parameters of an operation."""

_TOKEN_SECONDS = 10 * 60
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html; counted in the JSON of items.
_MAX_ITEM, _MAX_PAGE, _MAX_HASH, _MAX_RANGE, _MAX_ACTIONS = 400 * 1024, 1024 * 1024, 2048, 1024, 100
_FAILED = "ConditionalCheckFailedException"
_AFTER = b"\xff"


@dataclass(frozen=True, slots=True)
class Index:
    """The index of a table, or the table itself: rows in the order of their places.

    A place is the index and the attributes of the key, each ended by a zero byte; no part begins with `_AFTER`.
    """

    name: str
    begin: bytes
    keys: tuple[str, ...]
    names: tuple[str, ...]
    """The attributes of its key, and then of the table's."""
    types: dict[str, str]

    def place(self, item: Item) -> bytes:
        """Return the place of an item."""
        return self.begin + b"".join(self.part(item, name) for name in self.names)

    def part(self, item: Item, name: str) -> bytes:
        """Return what an attribute of the key adds to the place."""
        if name not in item or kind(item[name]) != self.types[name]:
            raise Refusal(f"Missing the key {name}, or type mismatch: expected {self.types[name]}")
        limit = _MAX_RANGE if name in self.keys[1:] else _MAX_HASH
        if not 0 < len(part := order(item[name])) <= limit:
            raise Refusal(f"The key {name} must have 1 to {limit} bytes")
        return part.replace(b"\0", b"\0" + _AFTER) + b"\0"

    def has(self, item: Item) -> bool:
        """Tell whether an item is in the index: it has every attribute of the key."""
        return {*self.names} <= item.keys()


Tables = dict[str, list[Index]]
"""The indexes of each table by its name; the first is the table itself. A table never changes."""


class _Session:
    """The operations, within the transaction of one request; each returns the body of the response."""

    def __init__(self, connection: sqlite3.Connection, tables: Tables) -> None:
        self._execute, self._tables = connection.execute, tables

    def get_item(self, request: Request) -> str:
        table, *_ = self._table(request)
        stored = self._read(table.place(_key(table, request)))
        return f'{{"Item":{stored}}}' if stored else "{}"

    def write_item(self, request: Request, action: str) -> str:
        """Put, update or delete an item if the condition holds."""
        table, *_ = indexes = self._table(request)
        item = normal(request["Item"]) if action == "Put" else _key(table, request)
        # Places in other indexes are of no interest yet, but the wrong type of a key is reported before the condition.
        place, *_ = [index.place(item) for index in indexes if index is table or index.has(item)]
        wanted, on_failure = (
            request.get(name, "NONE") for name in ("ReturnValues", "ReturnValuesOnConditionCheckFailure")
        )
        if wanted not in _RETURN_VALUES[action == "Update"] or on_failure not in {"NONE", "ALL_OLD"}:
            raise Refusal("Return values set to invalid value")
        old: Item = json.loads(self._read(place) or "{}")
        expressions = Expressions(request, old)
        holds, changes = expressions.condition(), expressions.changes()
        expressions.check_all_used()
        if fixed := changes.keys() & {*table.keys}:
            raise Refusal(f"Cannot update attribute {fixed.pop()}. This attribute is part of the key")
        if not holds:
            shown = {"Item": old} if old and on_failure == "ALL_OLD" else {}
            raise Refusal("The conditional request failed", _FAILED, **shown)
        new = {} if action == "Delete" else item
        if action == "Update":
            values = {name: change() for name, change in changes.items()}
            new = {name: value for name, value in {**item, **old, **values}.items() if value is not None}
        self._store(indexes, old, new)
        returned = {"ALL_OLD": old, "UPDATED_OLD": old, "ALL_NEW": new, "UPDATED_NEW": new}.get(wanted, {})
        if wanted.startswith("UPDATED"):
            returned = {name: value for name, value in returned.items() if name in changes}
        return _json({"Attributes": returned}) if returned else "{}"

    def transact_write_items(self, request: Request) -> str:
        actions, token = request["TransactItems"], request.get("ClientRequestToken")
        if token and self._is_repeated(token, sha256(json.dumps(actions, sort_keys=True).encode()).digest()):
            return "{}"
        if not 1 <= len(actions) <= _MAX_ACTIONS:
            raise Refusal(f"A transaction has 1 to {_MAX_ACTIONS} items")
        reasons, places = zip(*(self._act(*action) for item in actions for action in item.items()), strict=True)
        if len(set(places)) < len(actions):
            raise Refusal("Transaction request cannot include multiple operations on one item")
        codes = [reason["Code"] for reason in reasons]
        if "ConditionalCheckFailed" in codes:
            message = "Transaction cancelled, please refer cancellation reasons for specific reasons "
            message += f"[{', '.join(codes)}]"
            raise Refusal(message, "TransactionCanceledException", CancellationReasons=reasons)
        return "{}"

    def _act(self, action: str, request: Request) -> tuple[dict[str, Any], bytes]:
        """Do a part of a transaction; return why it has to be cancelled, and the place of the item."""
        if action not in _ACTIONS:
            raise unknown(f"the action {action} of a transaction")
        _check_parameters(action, _ACTIONS[action], request)
        table, *_ = self._table(request)
        place = table.place(normal(request.get("Item") or request["Key"]))
        try:
            self.write_item(request, action)
        except Refusal as refusal:
            if refusal.code != _FAILED:
                raise
            return {"Code": "ConditionalCheckFailed", "Message": refusal.message, **refusal.members}, place
        return {"Code": "None"}, place

    def query(self, request: Request) -> str:
        index = self._index(request)
        expressions = Expressions(request, {})
        conditions = expressions.key_conditions()
        expressions.check_all_used()
        hash_, *ranges = index.keys
        if not {hash_} <= conditions.keys() <= {*index.keys} or conditions[hash_][0] != "=":
            raise Refusal(f"Query condition missed key schema element: {hash_}, or is not supported")
        low = index.begin + index.part({hash_: conditions[hash_][1]}, hash_)
        high = low + _AFTER
        for name in conditions.keys() & set(ranges):
            comparator, value = conditions[name]
            place = low + index.part({name: value}, name)
            if comparator in {"=", ">=", ">"}:
                low = place + _AFTER if comparator == ">" else place
            if comparator in {"=", "<=", "<"}:
                high = place if comparator == "<" else place + _AFTER
        return self._page(request, index, low, high)

    def scan(self, request: Request) -> str:
        index = self._index(request)
        return self._page(request, index, index.begin, index.begin + _AFTER)

    def create_table(self, request: Request) -> str:
        name, indexes = request["TableName"], request.get("GlobalSecondaryIndexes", [])
        if self._execute("SELECT 1 FROM tables WHERE name = ?", (name,)).fetchone():
            raise Refusal(f"Table already exists: {name}", "ResourceInUseException")
        for index in indexes:
            if index["Projection"] != {"ProjectionType": "ALL"}:
                raise unknown(f"the projection {index['Projection']} of an index")
        arn = f"arn:aws:dynamodb:local:000000000000:table/{name}"
        made = {"TableStatus": "ACTIVE", "TableArn": arn, "CreationDateTime": time.time()}
        made["GlobalSecondaryIndexes"] = [index | {"IndexStatus": "ACTIVE"} for index in indexes]
        self._execute("INSERT INTO tables (name, description) VALUES (?, ?)", (name, _json(request | made)))
        return _json({"TableDescription": request | made})

    def describe_table(self, request: Request) -> str:
        return f'{{"Table":{self._described(request)[1]}}}'

    def update_time_to_live(self, request: Request) -> str:
        expiry = request["TimeToLiveSpecification"]
        self._execute("UPDATE tables SET expiry = ? WHERE id = ?", (_json(expiry), self._described(request)[0]))
        return _json({"TimeToLiveSpecification": expiry})

    def describe_time_to_live(self, request: Request) -> str:
        expiry = json.loads(self._described(request)[2] or '{"Enabled": false}')
        status = {"TimeToLiveStatus": "ENABLED" if expiry.pop("Enabled") else "DISABLED"}
        return _json({"TimeToLiveDescription": status | expiry})

    # -- what the operations share -------------------------------------------------------------------------------------

    def _described(self, request: Request) -> tuple[int, str, str | None]:
        """Find a table: its number, its description, and its attribute of expiry."""
        found = "SELECT id, description, expiry FROM tables WHERE name = ?"
        for row in self._execute(found, (request["TableName"],)):
            return row[0], row[1], row[2]
        raise Refusal("Requested resource not found", "ResourceNotFoundException")

    def _table(self, request: Request) -> list[Index]:
        if (name := request["TableName"]) not in self._tables:
            number, description, _ = self._described(request)
            made = json.loads(description)
            types = {each["AttributeName"]: each["AttributeType"] for each in made["AttributeDefinitions"]}
            indexes: list[Index] = []
            for described in (made, *made["GlobalSecondaryIndexes"]):
                keys = tuple(key["AttributeName"] for key in described["KeySchema"])
                names = tuple(dict.fromkeys(keys + (indexes[0].keys if indexes else ())))
                begin = f"{number}\0{described.get('IndexName', '')}\0".encode()
                indexes.append(Index(described.get("IndexName", ""), begin, keys, names, types))
            self._tables[name] = indexes
        return self._tables[name]

    def _index(self, request: Request) -> Index:
        name = request.get("IndexName", "")
        if name and request.get("ConsistentRead"):
            raise Refusal("Consistent reads are not supported on global secondary indexes")
        for index in self._table(request):
            if index.name == name:
                return index
        raise Refusal(f"The table does not have the specified index: {name}")

    def _read(self, place: bytes) -> str | None:
        row = self._execute("SELECT item FROM rows WHERE place = ?", (place,)).fetchone()
        return row[0] if row else None

    def _page(self, request: Request, index: Index, low: bytes, high: bytes) -> str:
        """Read the items from one place to before another, up to the limit or to the size of a page."""
        if "ExclusiveStartKey" in request:
            start = index.place(normal(request["ExclusiveStartKey"]))
            if request["ExclusiveStartKey"].keys() != {*index.names} or not low <= start < high:
                raise Refusal("The provided starting key is invalid, or does not match the range key predicate")
            low = start + _AFTER
        if (limit := request.get("Limit", sys.maxsize)) < 1:
            raise Refusal("Limit must be greater than or equal to 1")
        items: list[str] = []
        size = 0
        statement = "SELECT item FROM rows WHERE place >= ? AND place < ? ORDER BY place LIMIT ?"
        for (item,) in self._execute(statement, (low, high, limit)):
            items.append(item)
            size += len(item)
            if size > _MAX_PAGE:
                break
        last = ""
        if len(items) == limit or size > _MAX_PAGE:
            end = json.loads(items[-1])
            last = f',"LastEvaluatedKey":{_json({name: end[name] for name in index.names})}'
        return f'{{"Items":[{",".join(items)}],"Count":{len(items)},"ScannedCount":{len(items)}{last}}}'

    def _store(self, indexes: list[Index], old: Item, new: Item) -> None:
        """Replace an item in the table and in each index; an empty item is none."""
        if len(text := _json(new)) > _MAX_ITEM:
            raise Refusal("Item size has exceeded the maximum allowed size")
        for index in indexes:
            before, after = (index.place(item) if index.has(item) else b"" for item in (old, new))
            if before not in (b"", after):
                self._execute("DELETE FROM rows WHERE place = ?", (before,))
            if after:
                self._execute("REPLACE INTO rows VALUES (?, ?)", (after, text))

    def _is_repeated(self, token: str, content: bytes) -> bool:
        """Tell whether a transaction with this token has been carried out; remember it if not."""
        now = time.time()
        self._execute("DELETE FROM tokens WHERE expires <= ?", (now,))
        for (known,) in self._execute("SELECT content FROM tokens WHERE token = ?", (token,)):
            if known != content:
                raise Refusal("The token belongs to another transaction", "IdempotentParameterMismatchException")
            return True
        self._execute("INSERT INTO tokens VALUES (?, ?, ?)", (token, content, now + _TOKEN_SECONDS))
        return False


_RETURN_VALUES = {"NONE", "ALL_OLD"}, {"NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"}
READS = {"GetItem", "Query", "Scan", "DescribeTable", "DescribeTimeToLive"}
_PAGE = "TableName IndexName ConsistentRead Limit ExclusiveStartKey"
_WRITE = (
    "TableName ConditionExpression ExpressionAttributeNames ExpressionAttributeValues"
    " ReturnValuesOnConditionCheckFailure"
)
_ACTIONS = {"Put": f"{_WRITE} Item", "Update": f"{_WRITE} Key UpdateExpression", "Delete": f"{_WRITE} Key"}
_OPERATIONS: dict[str, tuple[Callable[[_Session, Request], str], str]] = {
    "GetItem": (_Session.get_item, "TableName Key ConsistentRead"),
    "PutItem": (partial(_Session.write_item, action="Put"), _ACTIONS["Put"] + " ReturnValues"),
    "UpdateItem": (partial(_Session.write_item, action="Update"), _ACTIONS["Update"] + " ReturnValues"),
    "DeleteItem": (partial(_Session.write_item, action="Delete"), _ACTIONS["Delete"] + " ReturnValues"),
    "TransactWriteItems": (_Session.transact_write_items, "TransactItems ClientRequestToken"),
    "Query": (_Session.query, f"{_PAGE} KeyConditionExpression ExpressionAttributeNames ExpressionAttributeValues"),
    "Scan": (_Session.scan, _PAGE),
    "CreateTable": (
        _Session.create_table,
        "TableName AttributeDefinitions KeySchema GlobalSecondaryIndexes BillingMode",
    ),
    "DescribeTable": (_Session.describe_table, "TableName"),
    "UpdateTimeToLive": (_Session.update_time_to_live, "TableName TimeToLiveSpecification"),
    "DescribeTimeToLive": (_Session.describe_time_to_live, "TableName"),
}
"""Each operation, and the parameters that it knows."""


def perform(connection: sqlite3.Connection, tables: Tables, operation: str, request: Request) -> str:
    """Carry out a request.

    Args:
        connection: It is in a transaction, unless the operation only reads.
        tables: Those that are known already; others are added.
        operation: DynamoDB's name.
        request: Its parameters.

    Returns:
        The body of the response.

    Raises:
        Refusal: DynamoDB or this store refuses the request.
    """
    if operation not in _OPERATIONS:
        raise unknown(f"the operation {operation}")
    method, parameters = _OPERATIONS[operation]
    _check_parameters(operation, parameters, request)
    return method(_Session(connection, tables), request)


def _check_parameters(operation: str, known: str, request: Request) -> None:
    if strange := request.keys() - set(known.split()):
        raise unknown(f"the parameter {min(strange)} of {operation}")


def _key(table: Index, request: Request) -> Item:
    key = normal(request["Key"])
    if key.keys() != {*table.keys}:
        raise Refusal("The provided key element does not match the schema")
    return key


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
