"""A local DynamoDB: an SQLite database that answers an SDK client in the client's process.

Each request is one SQLite transaction, which is on disk before the response is returned. The module
`operations` lists the operations and parameters that the store supports. A request with any
other operation or parameter gets an error that names this operation or parameter. The store never
deletes expired items.
"""

import json
import sqlite3
import threading
import zlib
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import botocore
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from tools import CommandError
from tools.local.expressions import DynamoDBError
from tools.local.operations import SCHEMA, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from botocore.session import Session


class Database:
    """A local DynamoDB in an SQLite file, which is created if it does not exist."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)  # SQLite's journal gets the same mode
        self._connection = sqlite3.connect(
            path, timeout=10, isolation_level=None, check_same_thread=False
        )
        try:
            self._connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
        except sqlite3.Error as error:
            self.close()
            raise CommandError(
                f"{path} cannot be used: {error}. Replace it with a good copy, or start with an"
                " empty store: make reset (with the same DATA)"
            ) from error

    def close(self) -> None:
        """Close the file. No request may be in progress."""
        self._connection.close()

    def answer(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse:
        """Answer a request as DynamoDB does."""
        body: Any = request.body
        operation, execute = event_name.rpartition(".")[2], self._connection.execute
        try:
            # The connection commits the transaction at the end of the block, or undoes the
            # transaction after an exception.
            with self._lock, self._connection:
                execute("BEGIN IMMEDIATE")
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
def answer_new_clients(answer: "Callable[..., AWSResponse]") -> "Iterator[None]":
    """Let a function answer the requests of DynamoDB clients that are created inside the block.

    So none of their requests reaches the network.
    """

    def attach(session: "Session") -> None:
        events = session.get_component("event_emitter")
        events.register("before-send.dynamodb", answer)

    botocore.register_initializer(attach)
    try:
        yield
    finally:
        botocore.unregister_initializer(attach)
