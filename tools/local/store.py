"""A local DynamoDB: an SQLite database that answers the SDK's requests.

Each request is one SQLite transaction, which is on disk before the response is returned. The module
`operations` lists the operations and parameters that the store supports. Any other operation, and
most other parameters, get an error that names them. (Scan ignores Limit and IndexName.) The store
never deletes expired items.
"""

import json
import sqlite3
import threading
import zlib
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import botocore
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from tools import CommandError
from tools.local.expressions import DynamoDBError
from tools.local.operations import READS, SCHEMA, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from botocore.session import Session

# Lock first: after a plain BEGIN, a write that follows a read could fail without waiting.
_BEGIN_WRITE = "BEGIN IMMEDIATE"


def _create(path: Path) -> None:
    """Create a file for a database, in the mode WAL if the file system allows that."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600, exist_ok=False)  # SQLite's other files get the same mode
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(_BEGIN_WRITE)
    except sqlite3.OperationalError:
        # WAL does not work here, for example on a network file system: empty the file again.
        path.write_bytes(b"")


def _connect(path: Path) -> tuple[threading.Lock, sqlite3.Connection]:
    """Connect to a database; return a lock that guards the connection, and the connection."""
    connection = sqlite3.connect(
        path, timeout=10, isolation_level=None, check_same_thread=False
    )
    return threading.Lock(), connection


class Database:
    """A local DynamoDB in an SQLite file, which is created if it does not exist.

    SQLite appends writes to a second file (WAL), so that reads need not wait for a write. Where the
    file system does not allow WAL, reads wait. To copy the store, stop the service, and copy
    all files of its folder.
    """

    def __init__(self, path: Path) -> None:
        with suppress(FileExistsError):
            _create(path)
        self._reading, self._writing = _connect(path), _connect(path)
        _, connection = self._writing
        try:
            # Some builds of SQLite would not wait for the disk in the mode WAL.
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(f"{_BEGIN_WRITE}; {SCHEMA} COMMIT;")
        except sqlite3.Error as error:
            self.close()
            raise CommandError(
                f"{path} cannot be used: {error}. Stop what else uses it, replace it with a good"
                f" copy, or start with an empty store: move {path.parent} away"
            ) from error

    def close(self) -> None:
        """Close the file. No request may be in progress."""
        for _, connection in (self._reading, self._writing):
            connection.close()

    def answer(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse:
        """Answer a request of the SDK."""
        body: Any = request.body
        operation = event_name.rpartition(".")[2]
        is_read = operation in READS
        lock, connection = self._reading if is_read else self._writing
        try:
            # The connection commits the transaction at the end of the block, or undoes the
            # transaction after an exception.
            with lock, connection:
                execute = connection.execute
                execute("BEGIN" if is_read else _BEGIN_WRITE)
                status, answer = 200, perform(execute, operation, json.loads(body))
        except DynamoDBError as error:
            error_type = f"com.amazonaws.dynamodb.v20120810#{error.code}"
            answer = {"__type": error_type, "message": error.message, **error.members}
            status = 400
        content = json.dumps(answer).encode()
        # The SDK reads the response's body from `raw.stream()`.
        raw: Any = SimpleNamespace(stream=lambda: [content])
        headers: Any = {"x-amz-crc32": str(zlib.crc32(content))}
        return AWSResponse(request.url, status, headers, raw)


@contextmanager
def intercept_new_clients(answer: "Callable[..., AWSResponse]") -> "Iterator[None]":
    """Let a function answer the DynamoDB clients of sessions made in the `with` block.

    No request of these clients reaches the network.
    """

    def attach(session: "Session") -> None:
        events = session.get_component("event_emitter")
        events.register("before-send.dynamodb", answer)

    botocore.register_initializer(attach)
    try:
        yield
    finally:
        botocore.unregister_initializer(attach)
