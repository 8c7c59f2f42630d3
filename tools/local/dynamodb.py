"""An embedded DynamoDB: one SQLite file that answers a client of the SDK in its own process.

What was answered is on disk: a request is one transaction, and SQLite waits for the disk at its end. Any number of
threads and processes can use the file at once. It knows what this project asks of DynamoDB; any other operation,
parameter, value or expression is refused by name, never ignored.
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
from typing import TYPE_CHECKING, Any

from tools.local.expressions import Expressions
from tools.local.values import Item, ItemRefusal, Refusal, kind, normal, order, unknown

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse
    from types_boto3_dynamodb import DynamoDBClient

Request = dict[str, Any]
"""The parameters of an operation."""

Key = tuple[bytes, bytes]
"""The hash key and the range key of an item, as `order` writes them; without a range key, the second is empty."""

_APPLICATION_ID = 0x616E696D
_VERSION = 1
_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
PRAGMA journal_mode = WAL;
CREATE TABLE tables (id INTEGER PRIMARY KEY, name TEXT UNIQUE, description TEXT, expiry TEXT);
CREATE TABLE items (tbl INTEGER, hash BLOB, range BLOB, item TEXT, PRIMARY KEY (tbl, hash, range)) WITHOUT ROWID;
-- The items that are in a secondary index: the keys that they have there and in the table.
CREATE TABLE entries (
    tbl INTEGER, idx TEXT, idx_hash BLOB, idx_range BLOB, hash BLOB, range BLOB,
    PRIMARY KEY (tbl, idx, idx_hash, idx_range, hash, range)) WITHOUT ROWID;
CREATE TABLE tokens (token TEXT PRIMARY KEY, content BLOB, expires REAL);
"""
_BUSY_SECONDS = 10
_TOKEN_SECONDS = 10 * 60
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html; counted in the JSON of items.
_MAX_ITEM, _MAX_PAGE, _MAX_KEY = 400 * 1024, 1024 * 1024, (2048, 1024)

_FAILED = "ConditionalCheckFailedException"
_WAY_OUT = "move it away (with its -wal and -shm), or empty the local store: make reset"


class DatabaseError(Exception):
    """The file cannot be used, and was left as it is; the message is for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class _Index:
    """The names of the attributes that make the key of a table, or of one of its indexes."""

    keys: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Table:
    """A table as it was created; that never changes."""

    id: int
    types: dict[str, str]
    primary: _Index
    indexes: tuple[_Index, ...]

    def key(self, item: Item, index: _Index) -> Key:
        """Return the key of an item in an index."""
        parts = [self.part(item, name, limit) for name, limit in zip(index.keys, _MAX_KEY, strict=False)]
        return parts[0], parts[1] if len(parts) > 1 else b""

    def part(self, item: Item, name: str, limit: int) -> bytes:
        """Return one attribute of a key, as its order demands."""
        if name not in item or kind(item[name]) != self.types[name]:
            raise Refusal(f"Missing the key {name}, or type mismatch: expected {self.types[name]}")
        if not 0 < len(part := order(item[name])) <= limit:
            raise Refusal(f"The key {name} must have 1 to {limit} bytes")
        return part


class Database:
    """An embedded DynamoDB.

    Args:
        path: Its file; it is created if there is none.

    Raises:
        DatabaseError: There is a file, and it is damaged, or something else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: deque[sqlite3.Connection] = deque()
        self._writing = threading.Lock()
        self._tables: dict[str, _Table] = {}
        try:
            _create(path)
            _check(path)
        except (OSError, sqlite3.Error) as error:
            raise _damaged(path, str(error)) from error

    def attach(self, client: "DynamoDBClient") -> None:
        """Answer every request of a client from now on, in place of the network."""
        client.meta.events.register_first("before-send.dynamodb", self.answer)  # type: ignore[arg-type] # it may answer

    def close(self) -> None:
        """Close the file; no request may be under way."""
        while self._idle:
            self._idle.pop().close()

    def answer(self, event_name: str, request: "AWSPreparedRequest", **_: object) -> "AWSResponse":
        """Answer a request as DynamoDB does: the SDK calls this before it would send."""
        # Here, because a command that needs no store should not wait for the SDK.
        from botocore.awsrequest import AWSResponse

        body: Any = request.body
        error: dict[str, Any]
        try:
            status, text = 200, self._perform(event_name.rpartition(".")[2], json.loads(body))
        except Refusal as refusal:
            error = {"__type": f"com.amazonaws.dynamodb.v20120810#{refusal.code}", "message": refusal.message}
            status, text = 400, _json(error | refusal.members)
        except sqlite3.Error as failure:
            error = {"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError"}
            status, text = 500, _json(error | {"message": f"The local store {self._path}: {failure}"})
        raw = text.encode()
        headers: Any = {"x-amz-crc32": str(zlib.crc32(raw)), "x-amzn-requestid": uuid.uuid4().hex}
        return AWSResponse(request.url, status, headers, _Body(raw))

    def _perform(self, operation: str, request: Request) -> str:
        if operation not in _OPERATIONS:
            raise unknown(f"the operation {operation}")
        perform, parameters = _OPERATIONS[operation]
        _check_parameters(operation, parameters, request)
        if operation in _READS:
            with self._connection() as connection:
                return perform(_Session(connection, self._tables), request)
        with self._writing, self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                text = perform(_Session(connection, self._tables), request)
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
    """The operations, within the transaction of one request; each returns the body of the response."""

    def __init__(self, connection: sqlite3.Connection, tables: dict[str, _Table]) -> None:
        self._execute, self._tables = connection.execute, tables

    def get_item(self, request: Request) -> str:
        table = self._table(request)
        stored = self._read(table, table.key(_key_of(table, request), table.primary))
        return f'{{"Item":{stored}}}' if stored else "{}"

    def put_item(self, request: Request) -> str:
        return _returned(request, {"ALL_OLD"}, *self._write("Put", request))

    def update_item(self, request: Request) -> str:
        return _returned(request, {"ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"}, *self._write("Update", request))

    def delete_item(self, request: Request) -> str:
        return _returned(request, {"ALL_OLD"}, *self._write("Delete", request))

    def transact_write_items(self, request: Request) -> str:
        actions, token = request["TransactItems"], request.get("ClientRequestToken")
        if token and self._is_repeated(token, sha256(json.dumps(actions, sort_keys=True).encode()).digest()):
            return "{}"
        reasons: list[dict[str, Any]] = []
        places = set()
        for ((action, parameters),) in map(dict.items, actions):
            if action not in _ACTIONS:
                raise unknown(f"the action {action} of a transaction")
            _check_parameters(action, _ACTIONS[action], parameters)
            table = self._table(parameters)
            places.add((table.id, table.key(normal(parameters.get("Item") or parameters["Key"]), table.primary)))
            try:
                self._write(action, parameters)
                reasons.append({"Code": "None"})
            except ItemRefusal as refusal:
                code = "ConditionalCheckFailed" if refusal.code == _FAILED else "ValidationError"
                reasons.append({"Code": code, "Message": refusal.message, **refusal.members})
        if len(places) < len(actions):
            raise Refusal("Transaction request cannot include multiple operations on one item")
        codes = ", ".join(reason["Code"] for reason in reasons)
        if codes.replace("None", "").strip(", "):
            raise Refusal(
                f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
                "TransactionCanceledException",
                CancellationReasons=reasons,
            )
        return "{}"

    def query(self, request: Request) -> str:
        table, index = self._index(request)
        expressions = Expressions(request, {})
        conditions = expressions.key_conditions()
        expressions.check_all_used()
        if not {index.keys[0]} <= conditions.keys() <= {*index.keys} or conditions[index.keys[0]][0] != "=":
            raise Refusal(f"Query condition missed key schema element: {index.keys[0]}, or is not supported")
        where, values = "", []
        for name, limit, column in zip(index.keys, _MAX_KEY, _columns(index), strict=False):
            if name in conditions:
                comparator, value = conditions[name]
                where += f" AND {column} {comparator} ?"
                values.append(table.part({name: value}, name, limit))
        return self._page(request, table, index, where, values)

    def scan(self, request: Request) -> str:
        return self._page(request, *self._index(request), "", [])

    def create_table(self, request: Request) -> str:
        name, arn = request["TableName"], f"arn:aws:dynamodb:local:000000000000:table/{request['TableName']}"
        if self._execute("SELECT 1 FROM tables WHERE name = ?", (name,)).fetchone():
            raise Refusal(f"Table already exists: {name}", "ResourceInUseException")
        indexes = request.get("GlobalSecondaryIndexes", [])
        for index in indexes:
            if index["Projection"] != {"ProjectionType": "ALL"}:
                raise unknown(f"the projection {index['Projection']} of an index")
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

    def _table(self, request: Request) -> _Table:
        name = request["TableName"]
        if name not in self._tables:
            number, description, _ = self._described(request)
            made = json.loads(description)
            types = {each["AttributeName"]: each["AttributeType"] for each in made["AttributeDefinitions"]}
            primary, *indexes = (
                _Index(tuple(key["AttributeName"] for key in keyed["KeySchema"]), keyed.get("IndexName", ""))
                for keyed in (made, *made["GlobalSecondaryIndexes"])
            )
            self._tables[name] = _Table(number, types, primary, tuple(indexes))
        return self._tables[name]

    def _index(self, request: Request) -> tuple[_Table, _Index]:
        table, name = self._table(request), request.get("IndexName", "")
        if name and request.get("ConsistentRead"):
            raise Refusal("Consistent reads are not supported on global secondary indexes")
        for index in (table.primary, *table.indexes):
            if index.name == name:
                return table, index
        raise Refusal(f"The table does not have the specified index: {name}")

    def _read(self, table: _Table, key: Key) -> str | None:
        row = self._execute("SELECT item FROM items WHERE tbl = ? AND hash = ? AND range = ?", (table.id, *key))
        return next((item for (item,) in row), None)

    def _page(self, request: Request, table: _Table, index: _Index, where: str, values: list[bytes]) -> str:
        """Read items in the order of an index, up to the limit or to the size of a page."""
        columns = _columns(index)
        source = "items WHERE tbl = ?"
        bindings: list[Any] = [table.id]
        if index.name:
            source = "entries JOIN items USING (tbl, hash, range) WHERE tbl = ? AND idx = ?"
            bindings.append(index.name)
        names = dict.fromkeys(index.keys + table.primary.keys)
        if start := normal(request.get("ExclusiveStartKey", {})):
            if start.keys() != names.keys():
                raise Refusal("The provided starting key is invalid")
            where += f" AND ({', '.join(columns)}) > ({', '.join('?' * len(columns))})"
            values += (table.key(start, index) if index.name else ()) + table.key(start, table.primary)
        if (limit := request.get("Limit", -1)) == 0:
            raise Refusal("Limit must be greater than or equal to 1")
        # Nothing of the request stands in the statement but the comparators that a key condition can have.
        statement = f"SELECT item FROM {source}{where} ORDER BY {', '.join(columns)} LIMIT ?"  # noqa: S608
        items: list[str] = []
        size = 0
        for (item,) in self._execute(statement, (*bindings, *values, limit)):
            items.append(item)
            size += len(item)
            if size > _MAX_PAGE:
                break
        last = ""
        if len(items) == limit or size > _MAX_PAGE:
            end = json.loads(items[-1])
            last = f',"LastEvaluatedKey":{_json({name: end[name] for name in names})}'
        return f'{{"Items":[{",".join(items)}],"Count":{len(items)},"ScannedCount":{len(items)}{last}}}'

    def _write(self, action: str, request: Request) -> tuple[Item, Item, Iterable[str]]:
        """Write an item if its condition holds; return what it was, what it is, and what an update has touched."""
        table = self._table(request)
        item = normal(request["Item"]) if action == "Put" else _key_of(table, request)
        key = table.key(item, table.primary)
        old: Item = json.loads(self._read(table, key) or "{}")
        expressions = Expressions(request, old)
        holds, changes = expressions.condition(), expressions.changes()
        expressions.check_all_used()
        if fixed := changes.keys() & {*table.primary.keys}:
            raise Refusal(f"Cannot update attribute {fixed.pop()}. This attribute is part of the key")
        if not holds:
            shown = {"Item": old} if old and request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" else {}
            raise ItemRefusal("The conditional request failed", _FAILED, **shown)
        new = {} if action == "Delete" else item
        if action == "Update":
            values = {name: change() for name, change in changes.items()}
            new = {name: value for name, value in {**item, **old, **values}.items() if value is not None}
        self._store(table, key, old, new)
        return old, new, changes

    def _store(self, table: _Table, key: Key, old: Item, new: Item) -> None:
        """Put an item in the place of another, in the table and in the indexes whose attributes it has."""
        for index in table.indexes:
            if {*index.keys} <= old.keys():
                entry = (table.id, index.name, *table.key(old, index), *key)
                where = "tbl = ? AND idx = ? AND idx_hash = ? AND idx_range = ? AND hash = ? AND range = ?"
                self._execute(f"DELETE FROM entries WHERE {where}", entry)  # noqa: S608 - a constant
            if {*index.keys} <= new.keys():
                entry = (table.id, index.name, *table.key(new, index), *key)
                self._execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", entry)
        if len(text := _json(new)) > _MAX_ITEM:
            raise ItemRefusal("Item size has exceeded the maximum allowed size")
        self._execute("DELETE FROM items WHERE tbl = ? AND hash = ? AND range = ?", (table.id, *key))
        if new:
            self._execute("INSERT INTO items VALUES (?, ?, ?, ?)", (table.id, *key, text))

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


_READS = {"GetItem", "Query", "Scan", "DescribeTable", "DescribeTimeToLive"}
_PAGE = "TableName IndexName ConsistentRead Limit ExclusiveStartKey"
_WRITE = (
    "TableName ConditionExpression ExpressionAttributeNames ExpressionAttributeValues"
    " ReturnValuesOnConditionCheckFailure"
)
_ACTIONS = {"Put": f"{_WRITE} Item", "Update": f"{_WRITE} Key UpdateExpression", "Delete": f"{_WRITE} Key"}
_OPERATIONS: dict[str, tuple[Callable[[_Session, Request], str], str]] = {
    "GetItem": (_Session.get_item, "TableName Key ConsistentRead"),
    "PutItem": (_Session.put_item, _ACTIONS["Put"] + " ReturnValues"),
    "UpdateItem": (_Session.update_item, _ACTIONS["Update"] + " ReturnValues"),
    "DeleteItem": (_Session.delete_item, _ACTIONS["Delete"] + " ReturnValues"),
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


def _check_parameters(operation: str, known: str, request: Request) -> None:
    if strange := request.keys() - set(known.split()):
        raise unknown(f"the parameter {min(strange)} of {operation}")


def _key_of(table: _Table, request: Request) -> Item:
    key = normal(request["Key"])
    if key.keys() != {*table.primary.keys}:
        raise Refusal("The provided key element does not match the schema")
    return key


def _columns(index: _Index) -> list[str]:
    """Return the columns that an index is ordered by."""
    return ["idx_hash", "idx_range", "hash", "range"] if index.name else ["hash", "range"]


def _returned(request: Request, known: set[str], old: Item, new: Item, changed: Iterable[str]) -> str:
    """Answer a write with what its ReturnValues asks for."""
    wanted = request.get("ReturnValues", "NONE")
    if wanted not in known | {"NONE"}:
        raise Refusal("Return values set to invalid value")
    attributes = {"NONE": {}}.get(wanted, old if wanted.endswith("OLD") else new)
    if wanted.startswith("UPDATED"):
        attributes = {name: attributes[name] for name in changed if name in attributes}
    return _json({"Attributes": attributes}) if attributes else "{}"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


class _Body(BytesIO):
    """A body in the form in which the SDK reads it from the network."""

    def stream(self, **_: object) -> Iterator[bytes]:
        yield self.read()


# -- the file ----------------------------------------------------------------------------------------------------------


def _connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """Open a file that exists: a store that is taken away while it is used does not come back empty."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _create(path: Path) -> None:
    """Create an empty store where there is none, in one step: an unfinished file never has its name."""
    if path.exists():
        return
    if (log := Path(f"{path}-wal")).exists():
        raise DatabaseError(f"{log} is a part of {path}, which is missing. Bring that back, or {_WAY_OUT}.")
    new = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        with closing(sqlite3.connect(new)) as connection:
            connection.executescript(_SCHEMA)
        with suppress(FileExistsError):  # another process was faster
            os.link(new, path)
    finally:
        new.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _check(path: Path) -> None:
    """Refuse a file that is damaged or something else, without a change to it."""
    with path.open("rb") as file:
        header = file.read(100)
    if not header.startswith(b"SQLite format 3\0"):
        raise _damaged(path, "it is not a database")
    version, application = (int.from_bytes(header[place : place + 4]) for place in (60, 68))
    if application != _APPLICATION_ID or version != _VERSION:
        raise _damaged(path, "it is from another program, or another version of this one")
    # Read-only: another connection could write to the file when it is closed.
    with closing(_connect(path, "ro")) as connection:
        (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        raise _damaged(path, result)


def _damaged(path: Path, why: str) -> DatabaseError:
    return DatabaseError(f"{path} is not a local store that can be used: {why}. Nothing was changed; {_WAY_OUT}.")
