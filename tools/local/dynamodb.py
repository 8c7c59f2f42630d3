"""An embedded DynamoDB: one SQLite file that answers a client of the SDK in its own process.

What is acknowledged is on disk: each request is one transaction of SQLite, which waits for the disk at its end. Any
number of threads and processes can use the file at once. The store knows what this project asks of DynamoDB; any other
operation, parameter, value or expression is refused by name, never ignored.
"""

import json
import os
import sqlite3
import threading
import uuid
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.local.operations import READS, Tables, perform
from tools.local.values import Refusal

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse
    from types_boto3_dynamodb import DynamoDBClient

_APPLICATION_ID = 0x616E696D
_VERSION = 1
# As in DynamoDB, an index has rows of its own, with the whole item in each. The table itself is its first index.
_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
PRAGMA journal_mode = WAL;
CREATE TABLE tables (id INTEGER PRIMARY KEY, name TEXT UNIQUE, description TEXT, expiry TEXT);
CREATE TABLE rows (place BLOB PRIMARY KEY, item TEXT) WITHOUT ROWID;
CREATE TABLE tokens (token TEXT PRIMARY KEY, content BLOB, expires REAL);
CREATE INDEX tokens_by_expiry ON tokens (expires);
"""
_EVENT = "before-send.dynamodb"


class DatabaseError(Exception):
    """The file cannot be used, and was left as it is; the message is for the person at the terminal."""


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
        self._tables: Tables = {}
        self._clients: list[DynamoDBClient] = []
        try:
            _create(path)
            _check(path)
        except (OSError, sqlite3.Error) as error:
            raise _damaged(path, str(error)) from error

    def attach(self, client: "DynamoDBClient") -> None:
        """Answer every request of a client, in place of the network, until `close`."""
        client.meta.events.register_first(_EVENT, self.answer)  # type: ignore[arg-type] # the stubs know no answers
        # Last, for a request that comes after `close`: none may reach the network.
        client.meta.events.register_last(_EVENT, _refuse, unique_id="embedded-store-closed")  # type: ignore[arg-type]
        self._clients.append(client)

    def close(self) -> None:
        """Detach the clients and close the file; no request may be under way."""
        for client in self._clients:
            client.meta.events.unregister(_EVENT, self.answer)  # type: ignore[arg-type]
        while self._idle:
            self._idle.pop().close()

    def answer(self, event_name: str, request: "AWSPreparedRequest", **_: object) -> "AWSResponse":
        """Answer a request as DynamoDB does: the SDK calls this before it would send."""
        body: Any = request.body
        try:
            status, text = 200, self._perform(event_name.rpartition(".")[2], json.loads(body))
        except Refusal as refusal:
            status, text = 400, _error(refusal)
        except sqlite3.Error as error:
            status, text = 500, _error(Refusal(f"The local store {self._path}: {error}", "InternalServerError"))
        return _response(request, status, text)

    def _perform(self, operation: str, request: dict[str, Any]) -> str:
        with self._connection() as connection:
            if operation in READS:
                return perform(connection, self._tables, operation, request)
            with self._writing:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    text = perform(connection, self._tables, operation, request)
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


def _response(request: "AWSPreparedRequest", status: int, text: str) -> "AWSResponse":
    # Here, because a command that needs no store should not wait for the SDK.
    from botocore.awsrequest import AWSResponse

    raw = text.encode()
    headers: Any = {"x-amz-crc32": str(zlib.crc32(raw)), "x-amzn-requestid": uuid.uuid4().hex}
    return AWSResponse(request.url, status, headers, _Body(raw))


def _refuse(request: "AWSPreparedRequest", **_: object) -> "AWSResponse":
    return _response(request, 500, _error(Refusal("The local store is closed", "InternalServerError")))


def _error(refusal: Refusal) -> str:
    name = f"com.amazonaws.dynamodb.v20120810#{refusal.code}"
    return json.dumps({"__type": name, "message": refusal.message, **refusal.members})


class _Body(BytesIO):
    """A body in the form in which the SDK reads it from the network."""

    def stream(self, **_: object) -> Iterator[bytes]:
        yield self.read()


# -- the file ----------------------------------------------------------------------------------------------------------


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file that exists: a store that is taken away while it is used does not come back empty."""
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, timeout=10, isolation_level=None, check_same_thread=False, uri=True)
    try:
        connection.executescript("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON")  # the latter is for macOS
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _create(path: Path) -> None:
    """Create an empty store where there is none, in one step: no unfinished file ever has its name."""
    log = Path(f"{path}-wal")
    is_log_there = log.exists()  # asked first: another process may be creating the store
    if path.exists():
        return
    if is_log_there:
        raise DatabaseError(f"{log} is a part of {path}, which is missing.")
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
    """Refuse a file that is damaged or something else, without changing it."""
    with path.open("rb") as file:
        header = file.read(100)
    # https://www.sqlite.org/fileformat.html#the_database_header
    page, version, application = (int.from_bytes(header[begin:end]) for begin, end in ((16, 18), (60, 64), (68, 72)))
    if not header.startswith(b"SQLite format 3\0") or application != _APPLICATION_ID or version != _VERSION:
        raise _damaged(path, "it is something else, or from another version of this program")
    # With a log, SQLite decides: pages that are missing here may be there.
    if path.stat().st_size % page and not Path(f"{path}-wal").exists():
        raise _damaged(path, "it is cut off")
    # Read-only: another connection could write to the file when it is closed.
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        raise _damaged(path, result.splitlines()[-1])


def _damaged(path: Path, why: str) -> DatabaseError:
    return DatabaseError(f"{path} is not a local store that can be used: {why}. Nothing was changed.")
