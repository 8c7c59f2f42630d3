"""An embedded DynamoDB: one SQLite file that answers a client of the SDK in its own process.

What is acknowledged is on disk: each request is one transaction of SQLite, which waits for the disk at its end. The
store knows what this project asks of DynamoDB; all else is refused by name, never ignored.
"""

import json
import os
import shlex
import sqlite3
import threading
import uuid
import zlib
from collections import deque
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from tools.local import LocalError
from tools.local.expressions import Refusal
from tools.local.operations import READS, perform

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

_APPLICATION_ID = 0x616E696D
_VERSION = 1
_PAGE_SIZE = 4096
# As in DynamoDB, an index has rows of its own, with the whole item in each. The table itself is its first index.
_SCHEMA = f"""
PRAGMA page_size = {_PAGE_SIZE};
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
PRAGMA journal_mode = WAL;
CREATE TABLE tables (id INTEGER PRIMARY KEY, name TEXT UNIQUE, description TEXT);
CREATE TABLE rows (place BLOB PRIMARY KEY, item TEXT) WITHOUT ROWID;
CREATE TABLE tokens (token TEXT PRIMARY KEY, content BLOB, expires REAL);
CREATE INDEX tokens_by_expiry ON tokens (expires);
"""


class Database:
    """An embedded DynamoDB in a file (of a data folder: `store/FILE`), created if there is none, left if damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: deque[sqlite3.Connection] = deque()
        self._writing = threading.Lock()
        self._is_open = True
        try:
            _create(path)
            _check(path)
        except (OSError, sqlite3.Error) as error:
            advice = "Put a good copy in its place, or start with an empty store: make reset DATA="
            why = f"{path} is not a local store that can be used: {error}. Nothing was changed.\n{advice}"
            raise LocalError(why + shlex.quote(str(path.parent.parent))) from error

    def attach(self, client: "DynamoDBClient") -> None:
        """Answer every request of a client, in place of the network; after `close`, with an error."""
        # The SDK's stubs have no type for handlers that return something.
        client.meta.events.register_first("before-send.dynamodb", self.answer)  # type: ignore[arg-type]

    def close(self) -> None:
        """Close the file; no request may be under way."""
        self._is_open = False
        while self._idle:
            self._idle.pop().close()

    def answer(self, event_name: str, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        """Answer a request as DynamoDB does: the SDK calls this before it would send."""
        body: Any = request.body
        try:
            return _response(
                request, 200, self._perform(event_name.rpartition(".")[2], json.loads(body))
            )
        except Refusal as error:
            status, refusal = 400, error
        except sqlite3.Error as error:
            status, refusal = (
                500,
                Refusal(f"The local store {self._path}: {error}", "InternalServerError"),
            )
        answer = {
            "__type": f"com.amazonaws.dynamodb.v20120810#{refusal.code}",
            "message": refusal.message,
        }
        return _response(request, status, json.dumps(answer | refusal.members))

    def _perform(self, operation: str, request: dict[str, Any]) -> str:
        try:
            connection = self._idle.pop()  # one that no other thread is using
        except IndexError:
            connection = self._connect()
        try:
            if operation in READS:
                return perform(connection.execute, operation, request)
            with self._writing, connection:  # it commits at the end, or rolls back what is refused
                connection.execute("BEGIN IMMEDIATE")
                return perform(connection.execute, operation, request)
        finally:
            self._idle.append(connection)

    def _connect(self) -> sqlite3.Connection:
        """Open the file, which exists: a store that is taken away while it is used does not come back empty."""
        if not self._is_open:
            raise sqlite3.ProgrammingError("it is closed")
        uri = f"{self._path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(
            uri, timeout=10, isolation_level=None, check_same_thread=False, uri=True
        )
        connection.executescript(
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON"
        )  # the latter is for macOS
        return connection


def _response(request: AWSPreparedRequest, status: int, text: str) -> AWSResponse:
    content = text.encode()
    headers: Any = {"x-amz-crc32": str(zlib.crc32(content)), "x-amzn-requestid": uuid.uuid4().hex}
    body: Any = SimpleNamespace(stream=lambda: [content])  # as the SDK reads it from the network
    return AWSResponse(request.url, status, headers, body)


def _create(path: Path) -> None:
    """Create an empty store where there is none, in one step: no unfinished file ever has its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        return
    new = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        with closing(sqlite3.connect(new)) as connection:
            connection.executescript(_SCHEMA)
        with suppress(FileExistsError):  # another process was faster
            os.link(new, path)
    finally:
        new.unlink(missing_ok=True)


def _check(path: Path) -> None:
    """Refuse a file that is damaged or something else, without changing it."""
    # With a log, SQLite decides: pages that are missing here may be there.
    if path.stat().st_size % _PAGE_SIZE and not Path(f"{path}-wal").exists():
        raise sqlite3.DatabaseError("it is cut off")
    # Read-only: another connection could write to the file when it is closed.
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        names = ("application_id", "user_version", "quick_check(1)")
        *version, result = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    if version != [_APPLICATION_ID, _VERSION]:
        raise sqlite3.DatabaseError("it is something else, or from another version of this program")
    if result != "ok":
        raise sqlite3.DatabaseError(result.splitlines()[-1])
