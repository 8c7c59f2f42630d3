"""An embedded DynamoDB: one SQLite file that answers a client of the SDK in its own process.

A response that was given is on disk: each request is one SQLite transaction, and SQLite waits for the disk at its end.
Any number of threads and processes can use the file at once. It knows what this project asks of DynamoDB; every other
operation, parameter or expression is refused by name, never ignored.
"""

import json
import os
import sqlite3
import threading
import time
import uuid
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tools.local.expressions import Expression, Placeholders
from tools.local.values import Item, ItemRefusal, Refusal, kind, normal, order, unknown

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse
    from types_boto3_dynamodb import DynamoDBClient

_APPLICATION_ID = 0x616E696D
_VERSION = 1
_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
PRAGMA journal_mode = WAL;
CREATE TABLE tables (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, description TEXT NOT NULL, expiry TEXT);
-- hash and range are the values of the keys, written so that their order is DynamoDB's.
CREATE TABLE items (
    tbl INTEGER, hash BLOB, range BLOB, item TEXT NOT NULL, PRIMARY KEY (tbl, hash, range)) WITHOUT ROWID;
-- The items that are in a secondary index, by its own keys.
CREATE TABLE entries (
    tbl INTEGER, idx TEXT, idx_hash BLOB, idx_range BLOB, hash BLOB, range BLOB,
    PRIMARY KEY (tbl, idx, idx_hash, idx_range, hash, range)) WITHOUT ROWID;
CREATE TABLE tokens (token TEXT PRIMARY KEY, request BLOB NOT NULL, expires REAL NOT NULL);
"""
_BUSY_SECONDS = 10
_TOKEN_SECONDS = 10 * 60
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html, here of the JSON.
_MAX_ITEM = 400 * 1024
_MAX_PAGE = 1024 * 1024
_MAX_KEY = (2048, 1024)


class DatabaseError(Exception):
    """The file cannot be used; the message is for the person at the terminal. The file stays as it is."""


@dataclass(frozen=True, slots=True)
class _Index:
    """The keys of a table or of one of its indexes: one attribute or two."""

    keys: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Table:
    """What a request needs to know of a table; it never changes."""

    id: int
    types: dict[str, str]
    primary: _Index
    indexes: tuple[_Index, ...]

    def key(self, item: Item, index: _Index) -> tuple[bytes, bytes]:
        """Return the key of an item as it is stored."""
        parts = [self.part(item, name, limit) for name, limit in zip(index.keys, _MAX_KEY, strict=False)]
        return parts[0], parts[1] if len(parts) > 1 else b""

    def part(self, item: Item, name: str, limit: int = _MAX_KEY[0]) -> bytes:
        """Return one attribute of a key as it is stored."""
        if name not in item:
            raise Refusal(f"One or more parameter values were invalid: Missing the key {name} in the item")
        if (actual := kind(item[name])) != self.types[name]:
            raise Refusal(f"Type mismatch for key {name} expected: {self.types[name]} actual: {actual}")
        if not (part := order(item[name])) or len(part) > limit:
            raise Refusal(f"The key {name} must have 1 to {limit} bytes.")
        return part


class Database:
    """An embedded DynamoDB.

    Args:
        path: Its file, which is made if it is not there.

    Raises:
        DatabaseError: There is a file, but it is none of ours, or it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: deque[sqlite3.Connection] = deque()
        self._writing = threading.Lock()
        self._tables: dict[str, _Table] = {}
        try:
            _create(path)
            _check(path)
            with self._connection():
                pass
        except (OSError, sqlite3.Error) as error:
            raise _damaged(path, str(error)) from error

    def attach(self, client: "DynamoDBClient") -> None:
        """Answer every request of a client from now on; it opens no socket any more."""
        client.meta.events.register_first("before-send.dynamodb", self.answer)  # type: ignore[arg-type] # the stubs know no handler that answers

    def close(self) -> None:
        """Close the file; no request may be under way or follow."""
        while self._idle:
            self._idle.pop().close()

    def answer(self, event_name: str, request: "AWSPreparedRequest", **_: object) -> "AWSResponse":
        """Answer a request as DynamoDB would over HTTP: the SDK's event `before-send`."""
        # Whoever has a client has loaded this already.
        from botocore.awsrequest import AWSResponse

        body: Any = request.body
        operation = event_name.rpartition(".")[2]
        try:
            status, text = 200, self._perform(operation, json.loads(body))
        except Refusal as refusal:
            error = {"__type": f"com.amazonaws.dynamodb.v20120810#{refusal.code}", "message": refusal.message}
            status, text = 400, _json(error | refusal.members)
        except sqlite3.Error as failure:
            error = {"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError"}
            status, text = 500, _json(error | {"message": f"The local store {self._path} failed: {failure}"})
        body = text.encode()
        headers: Any = {"x-amz-crc32": str(zlib.crc32(body)), "x-amzn-requestid": uuid.uuid4().hex}
        return AWSResponse(request.url, status, headers, _RawBody(body))

    def _perform(self, operation: str, request: dict[str, Any]) -> str:
        if operation not in _OPERATIONS:
            raise unknown(f"the operation {operation}")
        known = _OPERATIONS[operation]
        known.check(operation, request)
        if not known.writes:
            with self._connection() as connection:
                return known.perform(_Session(connection, self._tables), request)
        with self._writing, self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                text = known.perform(_Session(connection, self._tables), request)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        return text

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that no other thread is using."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = _connect(self._path)
        try:
            yield connection
        finally:
            self._idle.append(connection)


class _Session:
    """The operations, on a connection that is in the transaction of one request."""

    def __init__(self, connection: sqlite3.Connection, tables: dict[str, _Table]) -> None:
        self._execute, self._tables = connection.execute, tables

    # -- items ---------------------------------------------------------------------------------------------------------

    def get_item(self, request: dict[str, Any]) -> str:
        table = self._table(request)
        stored = self._read(table, table.key(_key(table, request), table.primary))
        return f'{{"Item":{stored}}}' if stored else "{}"

    def put_item(self, request: dict[str, Any]) -> str:
        return _returned(request, *self._write("Put", request))

    def update_item(self, request: dict[str, Any]) -> str:
        return _returned(request, *self._write("Update", request))

    def delete_item(self, request: dict[str, Any]) -> str:
        return _returned(request, *self._write("Delete", request))

    def transact_write_items(self, request: dict[str, Any]) -> str:
        actions, token = request["TransactItems"], request.get("ClientRequestToken")
        if token and self._is_repeated(token, sha256(json.dumps(actions, sort_keys=True).encode()).digest()):
            return "{}"
        reasons: list[dict[str, Any]] = []
        written = set()
        for action in actions:
            ((name, parameters),) = action.items()
            if name not in _ACTIONS:
                raise unknown(f"the action {name} of a transaction")
            _ACTIONS[name].check(name, parameters)
            try:
                self._write(name, parameters)
                reasons.append({"Code": "None"})
            except ItemRefusal as refusal:
                code = "ConditionalCheckFailed" if refusal.code == _FAILED else "ValidationError"
                reasons.append({"Code": code, "Message": refusal.message} | refusal.members)
            written.add(self._place(name, parameters))
        if len(written) < len(actions):
            raise Refusal("Transaction request cannot include multiple operations on one item")
        codes = [reason["Code"] for reason in reasons]
        if set(codes) != {"None"}:
            message = "Transaction cancelled, please refer cancellation reasons for specific reasons "
            raise Refusal(f"{message}[{', '.join(codes)}]", "TransactionCanceledException", CancellationReasons=reasons)
        return "{}"

    def query(self, request: dict[str, Any]) -> str:
        table, index = self._index(request)
        placeholders = Placeholders(request)
        conditions = Expression(request["KeyConditionExpression"], placeholders, {}).key_condition()
        placeholders.check_all_used()
        columns = ("idx_hash", "idx_range") if index.name else ("hash", "range")
        clauses, values = [], []
        for attribute, comparator, bounds in conditions:
            place = index.keys.index(attribute) if attribute in index.keys else -1
            if place < 0 or (place == 0 and comparator != "="):
                raise Refusal("Query key condition not supported")
            parts = [table.part({attribute: bound}, attribute) for bound in bounds]
            clauses.append(f"{columns[place]} {comparator} ?" + " AND ?" * (len(parts) - 1))
            values += parts
        if {attribute for attribute, *_ in conditions} not in ({index.keys[0]}, {*index.keys}):
            raise Refusal(f"Query condition missed key schema element: {index.keys[0]}")
        return self._page(request, table, index, clauses, values)

    def scan(self, request: dict[str, Any]) -> str:
        return self._page(request, *self._index(request), [], [])

    def _page(
        self, request: dict[str, Any], table: _Table, index: _Index, clauses: list[str], values: list[bytes]
    ) -> str:
        """Read items in the order of an index, up to the limit or to the size of a page."""
        source, order_by = "items WHERE tbl = ?", ["hash", "range"]
        bindings: list[Any] = [table.id]
        if index.name:
            source = "entries JOIN items USING (tbl, hash, range) WHERE tbl = ? AND idx = ?"
            order_by[:0] = ["idx_hash", "idx_range"]
            bindings.append(index.name)
        names = dict.fromkeys(index.keys + table.primary.keys)
        if start := _normal(request.get("ExclusiveStartKey", {})):
            if start.keys() != names.keys():
                raise Refusal("The provided starting key is invalid")
            clauses.append(f"({', '.join(order_by)}) > ({', '.join('?' * len(order_by))})")
            values += [*(table.key(start, index) if index.name else ()), *table.key(start, table.primary)]
        if (limit := request.get("Limit", -1)) == 0:
            raise Refusal("Limit must be greater than or equal to 1")
        where = "".join(f" AND {clause}" for clause in clauses)
        # Only names of columns and operators are put into the text.
        rows = self._execute(
            f"SELECT item FROM {source}{where} ORDER BY {', '.join(order_by)} LIMIT ?",  # noqa: S608
            [*bindings, *values, limit],
        )
        items: list[str] = []
        length = 0
        for (item,) in rows:
            items.append(item)
            length += len(item)
            if length > _MAX_PAGE:
                break
        last = ""
        if len(items) == limit or length > _MAX_PAGE:
            item = json.loads(items[-1])
            last = f',"LastEvaluatedKey":{_json({name: item[name] for name in names})}'
        return f'{{"Items":[{",".join(items)}],"Count":{len(items)},"ScannedCount":{len(items)}{last}}}'

    def _write(self, action: str, request: dict[str, Any]) -> tuple[Item, Item, Iterable[str]]:
        """Write one item if its condition holds; return it before and after, and what an update has changed."""
        table = self._table(request)
        item = _normal(request["Item"]) if action == "Put" else _key(table, request)
        key = table.key(item, table.primary)
        old: Item = json.loads(self._read(table, key) or "{}")
        placeholders = Placeholders(request)
        holds, changes = True, {}
        if "ConditionExpression" in request:
            holds = Expression(request["ConditionExpression"], placeholders, old).condition()
        if "UpdateExpression" in request:
            changes = Expression(request["UpdateExpression"], placeholders, old).update()
        placeholders.check_all_used()
        if fixed := changes.keys() & set(table.primary.keys):
            raise Refusal(f"Cannot update attribute {fixed.pop()}. This attribute is part of the key")
        if not holds:
            shown = {"Item": old} if old and request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" else {}
            raise ItemRefusal("The conditional request failed", _FAILED, **shown)
        match action:
            case "ConditionCheck":
                return old, old, ()
            case "Delete":
                new: Item = {}
            case "Put":
                new = item
            case _:
                values = {name: change() for name, change in changes.items()}
                new = {name: value for name, value in ({**item, **old, **values}).items() if value is not None}
        self._store(table, key, old, new)
        return old, new, changes

    def _store(self, table: _Table, key: tuple[bytes, bytes], old: Item, new: Item) -> None:
        """Replace an item, and its entries in the indexes that have its attributes."""
        for index in table.indexes:
            before, after = ([table.key(item, index)] if {*index.keys} <= item.keys() else [] for item in (old, new))
            for entry in before:
                self._execute(_DELETE_ENTRY, (table.id, index.name, *entry, *key))
            for entry in after:
                self._execute(_INSERT_ENTRY, (table.id, index.name, *entry, *key))
        if not new:
            self._execute("DELETE FROM items WHERE tbl = ? AND hash = ? AND range = ?", (table.id, *key))
        elif len(text := _json(new)) > _MAX_ITEM:
            raise ItemRefusal("Item size has exceeded the maximum allowed size")
        else:
            self._execute("INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?)", (table.id, *key, text))

    def _read(self, table: _Table, key: tuple[bytes, bytes]) -> str | None:
        row = self._execute(
            "SELECT item FROM items WHERE tbl = ? AND hash = ? AND range = ?", (table.id, *key)
        ).fetchone()
        return row[0] if row else None

    def _is_repeated(self, token: str, content: bytes) -> bool:
        """Tell whether a transaction with this token has been carried out, and remember it if not."""
        now = time.time()
        self._execute("DELETE FROM tokens WHERE expires <= ?", (now,))
        row = self._execute("SELECT request FROM tokens WHERE token = ?", (token,)).fetchone()
        if row is None:
            self._execute("INSERT INTO tokens VALUES (?, ?, ?)", (token, content, now + _TOKEN_SECONDS))
        elif row[0] != content:
            raise Refusal("The token belongs to another transaction.", "IdempotentParameterMismatchException")
        return row is not None

    def _place(self, action: str, request: dict[str, Any]) -> tuple[int, bytes, bytes]:
        table = self._table(request)
        return table.id, *table.key(_normal(request["Item" if action == "Put" else "Key"]), table.primary)

    # -- tables --------------------------------------------------------------------------------------------------------

    def create_table(self, request: dict[str, Any]) -> str:
        name = request["TableName"]
        if self._execute("SELECT 1 FROM tables WHERE name = ?", (name,)).fetchone():
            raise Refusal(f"Table already exists: {name}", "ResourceInUseException")
        arn = f"arn:aws:dynamodb:local:000000000000:table/{name}"
        indexes = request.get("GlobalSecondaryIndexes", [])
        for index in indexes:
            if index["Projection"] != {"ProjectionType": "ALL"}:
                raise unknown(f"the projection {index['Projection']} of an index")
        defined = {attribute["AttributeName"] for attribute in request["AttributeDefinitions"]}
        used = {key["AttributeName"] for keyed in (request, *indexes) for key in keyed["KeySchema"]}
        if defined != used:
            raise Refusal(f"The attributes of keys and the AttributeDefinitions differ: {sorted(defined ^ used)}")
        description = {
            **request,
            "TableStatus": "ACTIVE",
            "TableArn": arn,
            "CreationDateTime": time.time(),
            "GlobalSecondaryIndexes": [
                index | {"IndexStatus": "ACTIVE", "IndexArn": f"{arn}/index/{index['IndexName']}"} for index in indexes
            ],
        }
        self._execute("INSERT INTO tables (name, description) VALUES (?, ?)", (name, _json(description)))
        return _json({"TableDescription": description})

    def describe_table(self, request: dict[str, Any]) -> str:
        return f'{{"Table":{self._described(request)[1]}}}'

    def update_time_to_live(self, request: dict[str, Any]) -> str:
        expiry = request["TimeToLiveSpecification"]
        self._execute("UPDATE tables SET expiry = ? WHERE id = ?", (_json(expiry), self._described(request)[0]))
        return _json({"TimeToLiveSpecification": expiry})

    def describe_time_to_live(self, request: dict[str, Any]) -> str:
        expiry = json.loads(self._described(request)[2] or '{"Enabled": false}')
        status = "ENABLED" if expiry.pop("Enabled") else "DISABLED"
        return _json({"TimeToLiveDescription": {"TimeToLiveStatus": status} | expiry})

    def _described(self, request: dict[str, Any]) -> tuple[int, str, str | None]:
        name = request["TableName"]
        row = self._execute("SELECT id, description, expiry FROM tables WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise Refusal(f"Requested resource not found: Table: {name} not found", "ResourceNotFoundException")
        return row[0], row[1], row[2]

    def _table(self, request: dict[str, Any]) -> _Table:
        if not (table := self._tables.get(request["TableName"])):
            number, text, _ = self._described(request)
            described = json.loads(text)
            types = {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}
            indexes = (_Index(_keys(index), index["IndexName"]) for index in described["GlobalSecondaryIndexes"])
            table = _Table(number, types, _Index(_keys(described)), tuple(indexes))
            self._tables[request["TableName"]] = table
        return table

    def _index(self, request: dict[str, Any]) -> tuple[_Table, _Index]:
        table = self._table(request)
        if (name := request.get("IndexName")) is None:
            return table, table.primary
        if request.get("ConsistentRead"):
            raise Refusal("Consistent reads are not supported on global secondary indexes")
        for index in table.indexes:
            if index.name == name:
                return table, index
        raise Refusal(f"The table does not have the specified index: {name}")


class _Operation(NamedTuple):
    """An operation, and the parameters that this store knows."""

    perform: Callable[[_Session, dict[str, Any]], str]
    required: str
    optional: str = ""
    writes: bool = False

    def check(self, name: str, request: dict[str, Any]) -> None:
        """Refuse parameters that are not known, or not there."""
        required = set(self.required.split())
        if strange := request.keys() - required - set(self.optional.split()):
            raise unknown(f"the parameter {min(strange)} of {name}")
        if missing := required - request.keys():
            raise Refusal(f"The parameter {min(missing)} is required but was not present in the request")


_FAILED = "ConditionalCheckFailedException"
_DELETE_ENTRY = (
    "DELETE FROM entries WHERE tbl = ? AND idx = ? AND idx_hash = ? AND idx_range = ? AND hash = ? AND range = ?"
)
_INSERT_ENTRY = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)"
_CONDITIONAL = (
    "ConditionExpression ExpressionAttributeNames ExpressionAttributeValues ReturnValuesOnConditionCheckFailure"
)
_PAGE = "IndexName ConsistentRead Limit ExclusiveStartKey"
_OPERATIONS = {
    "GetItem": _Operation(_Session.get_item, "TableName Key", "ConsistentRead"),
    "PutItem": _Operation(_Session.put_item, "TableName Item", f"{_CONDITIONAL} ReturnValues", writes=True),
    "UpdateItem": _Operation(
        _Session.update_item, "TableName Key", f"{_CONDITIONAL} UpdateExpression ReturnValues", writes=True
    ),
    "DeleteItem": _Operation(_Session.delete_item, "TableName Key", f"{_CONDITIONAL} ReturnValues", writes=True),
    "TransactWriteItems": _Operation(_Session.transact_write_items, "TransactItems", "ClientRequestToken", writes=True),
    "Query": _Operation(
        _Session.query,
        "TableName KeyConditionExpression",
        f"{_PAGE} ExpressionAttributeNames ExpressionAttributeValues",
    ),
    "Scan": _Operation(_Session.scan, "TableName", _PAGE),
    "CreateTable": _Operation(
        _Session.create_table,
        "TableName AttributeDefinitions KeySchema",
        "GlobalSecondaryIndexes BillingMode",
        writes=True,
    ),
    "DescribeTable": _Operation(_Session.describe_table, "TableName"),
    "UpdateTimeToLive": _Operation(_Session.update_time_to_live, "TableName TimeToLiveSpecification", writes=True),
    "DescribeTimeToLive": _Operation(_Session.describe_time_to_live, "TableName"),
}
_ACTIONS = {
    "Put": _Operation(_Session.put_item, "TableName Item", _CONDITIONAL),
    "Update": _Operation(_Session.update_item, "TableName Key UpdateExpression", _CONDITIONAL),
    "Delete": _Operation(_Session.delete_item, "TableName Key", _CONDITIONAL),
    "ConditionCheck": _Operation(_Session.delete_item, "TableName Key ConditionExpression", _CONDITIONAL),
}


class _RawBody(BytesIO):
    """A body as the SDK reads it from a connection."""

    def stream(self, **_: object) -> Iterator[bytes]:
        yield self.read()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _normal(item: dict[str, Any]) -> Item:
    return {name: normal(value) for name, value in item.items()}


def _key(table: _Table, request: dict[str, Any]) -> Item:
    key = _normal(request["Key"])
    if key.keys() != set(table.primary.keys):
        raise Refusal("The provided key element does not match the schema")
    return key


def _keys(described: dict[str, Any]) -> tuple[str, ...]:
    return tuple(key["AttributeName"] for key in described["KeySchema"])


def _returned(request: dict[str, Any], old: Item, new: Item, changed: Iterable[str]) -> str:
    """Answer a write with what ReturnValues asks for."""
    match request.get("ReturnValues", "NONE"), "UpdateExpression" in request or "Key" in request:
        case "NONE", _:
            attributes: Item = {}
        case "ALL_OLD", _:
            attributes = old
        case "ALL_NEW", True:
            attributes = new
        case "UPDATED_OLD", True:
            attributes = {name: old[name] for name in changed if name in old}
        case "UPDATED_NEW", True:
            attributes = {name: new[name] for name in changed if name in new}
        case strange, _:
            raise Refusal(f"Return values set to invalid value: {strange}")
    return _json({"Attributes": attributes}) if attributes else "{}"


# -- the file ----------------------------------------------------------------------------------------------------------


def _connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """Open a file that is there: a store that was taken away under a running service must not come back empty."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        _BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _create(path: Path) -> None:
    """Make an empty store, if there is none, all at once: a file that is not whole is never one that was being made."""
    if path.exists():
        return
    log = Path(f"{path}-wal")
    if log.exists():
        raise DatabaseError(f"{log} has lost its database {path}. Bring that back, or {_WAY_OUT}.")
    new = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        with closing(sqlite3.connect(new)) as connection:
            connection.executescript(_SCHEMA)
        # Of several processes the first wins.
        with suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _check(path: Path) -> None:
    """Refuse a file that is not ours or damaged, without a change to it."""
    with path.open("rb") as file:
        header = file.read(100)
    if not header.startswith(b"SQLite format 3\0"):
        raise _damaged(path, "it is cut off, or something else")
    version, application = (int.from_bytes(header[place : place + 4]) for place in (60, 68))
    if application != _APPLICATION_ID:
        raise _damaged(path, "it is a database of another program")
    if version != _VERSION:
        raise _damaged(path, f"it was made by another version of this program ({version}, not {_VERSION})")
    # Through a connection that may only read: an ordinary one would bring the file up to date when it is closed.
    with closing(_connect(path, "ro")) as connection:
        (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        raise _damaged(path, result)


_WAY_OUT = "move it away, or empty the local store: make reset"


def _damaged(path: Path, why: str) -> DatabaseError:
    return DatabaseError(f"{path} cannot be used as the local store: {why}. It was left as it is; {_WAY_OUT}.")
