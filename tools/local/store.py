"""The local DynamoDB: one SQLite database that answers an SDK client in the client's own process.

What is acknowledged is on disk: each write is one SQLite transaction, which waits for the disk
at its end. The store supports what `operations` lists, and refuses the rest by name.
"""

import fcntl
import json
import sqlite3
import threading
import zlib
from collections import deque
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import botocore
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from tools.local import LocalError
from tools.local.expressions import Refusal
from tools.local.operations import READS, SCHEMA, Request, Response, perform

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from botocore.session import Session
    from types_boto3_dynamodb import DynamoDBClient

    from tools.local.template import Table

_VERSION = 0x616E6902  # of the file's format; an older one has 1, most other files 0
_NEW = f"""
PRAGMA user_version = {_VERSION};
PRAGMA journal_mode = WAL;
{SCHEMA}
"""


class Database:
    """A DynamoDB in a file, which is created if it is missing, and refused if damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: deque[sqlite3.Connection] = deque()
        self._writing = threading.Lock()
        try:
            _create(path)
            _check(path)
        except sqlite3.Error as error:
            raise LocalError(
                f"{path} cannot be used: {error}. Nothing was changed. Put a good copy in its"
                " place, or start with an empty store: make reset (with the same DATA)"
            ) from error

    def attach(self, client: "DynamoDBClient") -> None:
        """Answer every request of a client in place of the network."""
        # The SDK's stubs have no type for handlers that return something.
        events: Any = client.meta.events
        events.register_first("before-send", self._answer_dynamodb)

    @contextmanager
    def answering(self) -> "Iterator[None]":
        """Answer the clients of the sessions of the SDK that are made meanwhile."""

        def attach(session: "Session") -> None:
            events = session.get_component("event_emitter")
            events.register_first("before-send", self._answer_dynamodb)

        botocore.register_initializer(attach)
        try:
            yield
        finally:
            botocore.unregister_initializer(attach)

    def _answer_dynamodb(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse:
        """Answer a request for DynamoDB; LocalError for another service's."""
        if not event_name.startswith("before-send.dynamodb."):
            raise LocalError(f"{event_name}: only DynamoDB is served here")
        return self.answer(event_name, request)

    def close(self) -> None:
        """Close the file; no request may be under way."""
        while self._idle:
            self._idle.pop().close()

    def answer(self, event_name: str, request: AWSPreparedRequest) -> AWSResponse:
        """Answer a request as DynamoDB does."""
        body: Any = request.body
        operation = event_name.rpartition(".")[2]
        try:
            status, answer = 200, self._perform(operation, json.loads(body))
        except Refusal as error:
            kind = f"com.amazonaws.dynamodb.v20120810#{error.code}"
            answer = {"__type": kind, "message": error.message, **error.members}
            status = 400
        except sqlite3.Error as error:
            why = f"The local store {self._path}: {error}"
            status, answer = 500, {"__type": "InternalServerError", "message": why}
        content = json.dumps(answer).encode()
        # The SDK reads a response of the network in this way.
        raw: Any = SimpleNamespace(stream=lambda: [content])
        headers: Any = {"x-amz-crc32": str(zlib.crc32(content))}
        return AWSResponse(request.url, status, headers, raw)

    def _perform(self, operation: str, request: Request) -> Response:
        try:
            connection = self._idle.pop()  # no other thread is using it
        except IndexError:
            connection = self._connect()
        try:
            if operation in READS:
                return perform(connection.execute, operation, request)
            # The connection commits at the end, or rolls back what is refused.
            with self._writing, connection:
                connection.execute("BEGIN IMMEDIATE")
                return perform(connection.execute, operation, request)
        finally:
            self._idle.append(connection)

    def _connect(self) -> sqlite3.Connection:
        uri = f"{self._path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(
            uri, timeout=10, isolation_level=None, check_same_thread=False, uri=True
        )
        # Only macOS knows fullfsync.
        connection.executescript("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON")
        return connection


def create_tables(client: "DynamoDBClient", tables: "Iterable[Table]") -> None:
    """Create the tables that do not exist yet, without a time to live: nothing waits for it."""
    for table in tables:
        with suppress(client.exceptions.ResourceInUseException):
            client.create_table(**table.request)


def _create(path: Path) -> None:
    """Create an empty store if there is none, in one step: an unfinished file has another name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        return
    new = path.with_name(f"{path.name}.new")
    # Processes that start together create one file: the lock is on this one, which stays.
    with path.with_name(f"{path.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return
        new.unlink(missing_ok=True)
        new.touch(0o600)  # SQLite's other files get the mode of this one
        with closing(sqlite3.connect(new)) as connection:
            connection.executescript(_NEW)
        new.rename(path)


def _check(path: Path) -> None:
    """Refuse a file that is damaged, older or something else, without changing it."""
    # Read-only: any other connection could write to the file when it is closed.
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        version, result = connection.execute(
            "SELECT * FROM pragma_user_version, pragma_quick_check(1)"
        ).fetchone()
    if version != _VERSION:
        result = "it is something else, or from another version of this program"
    if result != "ok":
        raise sqlite3.DatabaseError(result)
