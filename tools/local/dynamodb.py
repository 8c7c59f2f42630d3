"""An embedded DynamoDB: one SQLite file that answers a client of the SDK in its own process.

What was answered is on disk: a request is one transaction, and SQLite waits for the disk at its end. Any number of
threads and processes can use the file at once. It knows what this project asks of DynamoDB; any other operation,
parameter, value or expression is refused by name, never ignored.
"""

import json
import os
import sqlite3
import sys
import threading
import time
import uuid
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.local.expressions import Expressions
from tools.local.values import Item, Refusal, kind, normal, order, unknown

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse
    from types_boto3_dynamodb import DynamoDBClient

Request = dict[str, Any]
"""The parameters of an operation."""

_APPLICATION_ID = 0x616E696D
_VERSION = 1
# An index is rows of its own, each with the whole item, as in DynamoDB; and a table is its first index.
_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
PRAGMA journal_mode = WAL;
CREATE TABLE tables (id INTEGER PRIMARY KEY, name TEXT UNIQUE, description TEXT, expiry TEXT);
CREATE TABLE rows (place BLOB PRIMARY KEY, item TEXT) WITHOUT ROWID;
CREATE TABLE tokens (token TEXT PRIMARY KEY, content BLOB, expires REAL);
"""
_TOKEN_SECONDS = 10 * 60
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html; counted in the JSON of items.
_MAX_ITEM, _MAX_PAGE, _MAX_HASH, _MAX_RANGE, _MAX_ACTIONS = 400 * 1024, 1024 * 1024, 2048, 1024, 100
_EVENT = "before-send.dynamodb"
_FAILED = "ConditionalCheckFailedException"
_WAY_OUT = "move it away (with its -wal and -shm), or empty the local store: make reset"


class DatabaseError(Exception):
    """The file cannot be used, and was left as it is; the message is for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class _Index:
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


_AFTER = b"\xff"


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
        self._tables: dict[str, list[_Index]] = {}
        self._clients: list[DynamoDBClient] = []
        try:
            _create(path)
            _check(path)
        except (OSError, sqlite3.Error) as error:
            raise _damaged(path, str(error)) from error

    def attach(self, client: "DynamoDBClient") -> None:
        """Answer every request of a client, in place of the network, until `close`."""
        client.meta.events.register_first(_EVENT, self.answer)  # type: ignore[arg-type] # the stubs know no answers
        self._clients.append(client)

    def close(self) -> None:
        """Leave the clients and the file; no request may be under way."""
        for client in self._clients:
            client.meta.events.unregister(_EVENT, self.answer)  # type: ignore[arg-type]
        while self._idle:
            self._idle.pop().close()

    def answer(self, event_name: str, request: "AWSPreparedRequest", **_: object) -> "AWSResponse":
        """Answer a request as DynamoDB does: the SDK calls this before it would send."""
        # Here, because a command that needs no store should not wait for the SDK.
        from botocore.awsrequest import AWSResponse

        body: Any = request.body
        try:
            status, text = 200, self._perform(event_name.rpartition(".")[2], json.loads(body))
        except Refusal as refusal:
            status, text = 400, _error(refusal)
        except sqlite3.Error as error:
            status, text = 500, _error(Refusal(f"The local store {self._path}: {error}", "InternalServerError"))
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

    def __init__(self, connection: sqlite3.Connection, tables: dict[str, list[_Index]]) -> None:
        self._execute, self._tables = connection.execute, tables

    def get_item(self, request: Request) -> str:
        table, *_ = self._table(request)
        stored = self._read(table.place(_key(table, request)))
        return f'{{"Item":{stored}}}' if stored else "{}"

    def write_item(self, request: Request, action: str) -> str:
        """Put, update or delete an item if the condition holds."""
        table, *_ = indexes = self._table(request)
        item = normal(request["Item"]) if action == "Put" else _key(table, request)
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
        reasons: list[dict[str, Any]] = []
        places = set()
        for ((action, parameters),) in map(dict.items, actions):
            if action not in _ACTIONS:
                raise unknown(f"the action {action} of a transaction")
            _check_parameters(action, _ACTIONS[action], parameters)
            table, *_ = self._table(parameters)
            places.add(table.place(normal(parameters.get("Item") or parameters["Key"])))
            try:
                self.write_item(parameters, action)
                reasons.append({"Code": "None"})
            except Refusal as refusal:
                if refusal.code != _FAILED:
                    raise
                reasons.append({"Code": "ConditionalCheckFailed", "Message": refusal.message, **refusal.members})
        if len(places) < len(actions):
            raise Refusal("Transaction request cannot include multiple operations on one item")
        codes = [reason["Code"] for reason in reasons]
        if "ConditionalCheckFailed" in codes:
            message = "Transaction cancelled, please refer cancellation reasons for specific reasons "
            message += f"[{', '.join(codes)}]"
            raise Refusal(message, "TransactionCanceledException", CancellationReasons=reasons)
        return "{}"

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

    def _table(self, request: Request) -> list[_Index]:
        """Find the indexes of a table; the first is the table itself."""
        if (name := request["TableName"]) not in self._tables:
            number, description, _ = self._described(request)
            made = json.loads(description)
            types = {each["AttributeName"]: each["AttributeType"] for each in made["AttributeDefinitions"]}
            indexes: list[_Index] = []
            for described in (made, *made["GlobalSecondaryIndexes"]):
                keys = tuple(key["AttributeName"] for key in described["KeySchema"])
                names = tuple(dict.fromkeys(keys + (indexes[0].keys if indexes else ())))
                begin = f"{number}\0{described.get('IndexName', '')}\0".encode()
                indexes.append(_Index(described.get("IndexName", ""), begin, keys, names, types))
            self._tables[name] = indexes
        return self._tables[name]

    def _index(self, request: Request) -> _Index:
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

    def _page(self, request: Request, index: _Index, low: bytes, high: bytes) -> str:
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

    def _store(self, indexes: list[_Index], old: Item, new: Item) -> None:
        """Put an item in the place of another; where there is none, it is empty."""
        if len(text := _json(new)) > _MAX_ITEM:
            raise Refusal("Item size has exceeded the maximum allowed size")
        for index in indexes:
            if index.has(old):
                self._execute("DELETE FROM rows WHERE place = ?", (index.place(old),))
            if index.has(new):
                self._execute("INSERT INTO rows VALUES (?, ?)", (index.place(new), text))

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
_READS = {"GetItem", "Query", "Scan", "DescribeTable", "DescribeTimeToLive"}
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


def _check_parameters(operation: str, known: str, request: Request) -> None:
    if strange := request.keys() - set(known.split()):
        raise unknown(f"the parameter {min(strange)} of {operation}")


def _key(table: _Index, request: Request) -> Item:
    key = normal(request["Key"])
    if key.keys() != {*table.keys}:
        raise Refusal("The provided key element does not match the schema")
    return key


def _error(refusal: Refusal) -> str:
    name = f"com.amazonaws.dynamodb.v20120810#{refusal.code}"
    return _json({"__type": name, "message": refusal.message, **refusal.members})


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


class _Body(BytesIO):
    """A body in the form in which the SDK reads it from the network."""

    def stream(self, **_: object) -> Iterator[bytes]:
        yield self.read()


# -- the file ----------------------------------------------------------------------------------------------------------


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file that exists: a store that is taken away while it is used does not come back empty."""
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, timeout=10, isolation_level=None, check_same_thread=False, uri=True)
    connection.executescript("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON")  # the latter is for macOS
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
    # https://www.sqlite.org/fileformat.html#the_database_header
    page, version, application = (int.from_bytes(header[begin:end]) for begin, end in ((16, 18), (60, 64), (68, 72)))
    if not header.startswith(b"SQLite format 3\0") or application != _APPLICATION_ID or version != _VERSION:
        raise _damaged(path, "it is something else, or from another version of this program")
    # Only what the log still has to bring may be missing.
    if path.stat().st_size % page and not Path(f"{path}-wal").exists():
        raise _damaged(path, "it is cut off")
    # Read-only: another connection could write to the file when it is closed.
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        raise _damaged(path, result.splitlines()[-1])


def _damaged(path: Path, why: str) -> DatabaseError:
    return DatabaseError(f"{path} is not a local store that can be used: {why}. Nothing was changed; {_WAY_OUT}.")
