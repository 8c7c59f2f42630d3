"""The local DynamoDB: one SQLite database that answers an SDK client in the client's own process.

What is acknowledged is on disk: each request is one SQLite transaction, which waits for the disk
at its end. The store supports what `operations` lists, and refuses the rest by name.
"""

import json
import sqlite3
import threading
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import botocore
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from tools.local import LocalError
from tools.local.expressions import Refusal
from tools.local.operations import SCHEMA, perform

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from botocore.session import Session
    from types_boto3_dynamodb import DynamoDBClient

_VERSION = 3
"""The version of the file's format; a new file has 0."""

_CREATE = f"""
BEGIN IMMEDIATE;
{SCHEMA}
PRAGMA user_version = {_VERSION};
COMMIT;
"""


class Database:
    """A DynamoDB in a file, which is created if it is missing."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)  # SQLite's journal gets the same mode
        self._connection = sqlite3.connect(
            path, timeout=10, isolation_level=None, check_same_thread=False
        )
        try:
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if version not in {0, _VERSION}:
                raise sqlite3.DatabaseError("another version of this program made it")
            self._connection.executescript(_CREATE)
        except sqlite3.Error as error:
            self.close()
            raise LocalError(
                f"{path} cannot be used: {error}. Put a good copy in its place, or start with an"
                " empty store: make reset (with the same DATA)"
            ) from error

    def close(self) -> None:
        """Close the file; no request may be under way."""
        self._connection.close()

    @contextmanager
    def answering(self) -> "Iterator[None]":
        """Answer the DynamoDB clients that are made meanwhile, in place of the network."""

        def attach(session: "Session") -> None:
            events = session.get_component("event_emitter")
            events.register("before-send.dynamodb", self.answer)

        botocore.register_initializer(attach)
        try:
            yield
        finally:
            botocore.unregister_initializer(attach)

    def answer(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse:
        """Answer a request as DynamoDB does."""
        body: Any = request.body
        operation, execute = event_name.rpartition(".")[2], self._connection.execute
        try:
            # The connection commits at the end, or rolls back what is refused.
            with self._lock, self._connection:
                execute("BEGIN IMMEDIATE")
                status, answer = 200, perform(execute, operation, json.loads(body))
        except Refusal as error:
            kind = f"com.amazonaws.dynamodb.v20120810#{error.code}"
            answer = {"__type": kind, "message": error.message, **error.members}
            status = 400
        content = json.dumps(answer).encode()
        # The SDK reads a response of the network in this way.
        raw: Any = SimpleNamespace(stream=lambda: [content])
        headers: Any = {"x-amz-crc32": str(zlib.crc32(content))}
        return AWSResponse(request.url, status, headers, raw)


def create_tables(client: "DynamoDBClient", tables: "Iterable[dict[str, Any]]") -> None:
    """Create the tables that do not exist yet, without a time to live: nothing waits for it."""
    for table in tables:
        with suppress(client.exceptions.ResourceInUseException):
            client.create_table(**table)
