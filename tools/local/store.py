"""An embedded DynamoDB: one SQLite file that answers an SDK client in the client's own process.

What is acknowledged is on disk: each request is one SQLite transaction, which waits for the disk
at its end. The store supports what `operations` lists, and refuses the rest by name.
"""

import json
import os
import sqlite3
import sys
import tempfile
import threading
import uuid
import zlib
from collections import deque
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import botocore
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from tools.local import LocalError
from tools.local.expressions import Refusal
from tools.local.operations import READS, Request, Response, perform
from tools.local.template import REGION, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from botocore.session import Session
    from types_boto3_dynamodb import DynamoDBClient

# An arbitrary number, which stores have had from the start.
_APPLICATION_ID = 0x616E696D
_VERSION = 1
_PAGE_SIZE = 4096
_GONE = "it was removed or replaced while in use; start the service again"
NOWHERE = "http://127.0.0.1:9"
"""Where all other services of AWS would be: nothing answers."""
_SETTINGS = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}
_kept: "list[Database | None]" = []  # what `keep_local` was called with last
# As in DynamoDB, an index has rows of its own, each with the whole item. The table is an index too.
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
    """An embedded DynamoDB in a file, which is created if it is missing, and refused if damaged.

    The message of that refusal ends with the advice.
    """

    def __init__(self, path: Path, advice: str = "") -> None:
        self._path = path
        self._idle: deque[sqlite3.Connection] = deque()
        self._writing = threading.Lock()
        try:
            _create(path)
            _check(path)
            self._identity = _identity(path)
        except (OSError, sqlite3.OperationalError) as error:
            why = "The disk may be full, or the folder read-only."
            raise LocalError(f"{path} cannot be opened: {error}. {why}") from error
        except sqlite3.Error as error:
            why = f"{path} is not a local store that can be used: {error}. Nothing was changed."
            raise LocalError(f"{why}\n{advice}") from error

    def attach(self, client: "DynamoDBClient") -> None:
        """Answer every request of a client in place of the network."""
        # The SDK's stubs have no type for handlers that return something.
        events: Any = client.meta.events
        events.register_first("before-send.dynamodb", self.answer)

    def close(self) -> None:
        """Close the file; no request may be under way."""
        if self._idle:
            with suppress(sqlite3.Error):
                self._refuse_if_gone(self._idle[0])
        while self._idle:
            self._idle.pop().close()

    def answer(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse:
        """Answer a request as DynamoDB does: the SDK calls this before sending."""
        body: Any = request.body
        operation = event_name.rpartition(".")[2]
        try:
            status, answer = 200, self._perform(operation, json.loads(body))
        except Refusal as error:
            status, answer = 400, error.body
        except sqlite3.Error as error:
            why = f"The local store {self._path}: {error}"
            status, answer = 500, Refusal(why, "InternalServerError").body
        content = json.dumps(answer).encode()
        # As the SDK reads it from the network.
        raw: Any = SimpleNamespace(stream=lambda: [content])
        headers: Any = {
            "x-amz-crc32": str(zlib.crc32(content)),
            "x-amzn-requestid": uuid.uuid4().hex,
        }
        return AWSResponse(request.url, status, headers, raw)

    def _perform(self, operation: str, request: Request) -> Response:
        try:
            connection = self._idle.pop()  # one that no other thread is using
        except IndexError:
            connection = self._connect()
        try:
            if operation in READS:
                self._refuse_if_gone(connection)
                return perform(connection.execute, operation, request)
            # The connection commits at the end, or rolls back what is refused.
            with self._writing, connection:
                self._refuse_if_gone(connection)
                connection.execute("BEGIN IMMEDIATE")
                return perform(connection.execute, operation, request)
        finally:
            self._idle.append(connection)

    def _refuse_if_gone(self, connection: sqlite3.Connection | None = None) -> None:
        """Refuse to use a file that has been removed or replaced, even if it comes back."""
        if _identity(self._path) == self._identity:
            return
        if connection and self._identity:
            # Once, empty the log into its own file, wherever that is: it would corrupt another.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._identity = ()
        raise sqlite3.ProgrammingError(_GONE)

    def _connect(self) -> sqlite3.Connection:
        self._refuse_if_gone()
        uri = f"{self._path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(
            uri, timeout=10, isolation_level=None, check_same_thread=False, uri=True
        )
        # The latter is for macOS.
        connection.executescript("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON")
        return connection


def keep_local(database: Database | None) -> None:
    """Keep AWS out of reach of every client of the SDK that this process makes from now on.

    The database answers them; without one, DynamoDB is where AWS_ENDPOINT_URL_DYNAMODB says.
    """
    if database:  # whatever the user's own settings for AWS are
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]
        os.environ |= _SETTINGS
    os.environ["AWS_ENDPOINT_URL"] = NOWHERE
    _kept[:] = [database]
    if "boto3" in sys.modules:  # its default session may be older
        sys.modules["boto3"].setup_default_session()


def _attach(session: "Session") -> None:
    """Answer the clients of a session that is being made."""
    # Code that has restored its own environment, such as a test, has its own sessions too.
    if os.environ.get("AWS_ENDPOINT_URL") != NOWHERE:
        return
    (database,) = _kept

    def answer(
        event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse | None:
        if not event_name.startswith("before-send.dynamodb."):
            raise LocalError(f"{event_name}: only DynamoDB is served here")
        return database.answer(event_name, request) if database else None

    session.get_component("event_emitter").register_first("before-send", answer)


botocore.register_initializer(_attach)


def create_tables(client: "DynamoDBClient", tables: "Iterable[Table]") -> None:
    """Create the tables that do not exist yet, without a time to live: nothing waits for it."""
    for table in tables:
        with suppress(client.exceptions.ResourceInUseException):
            client.create_table(**table.request)


def _identity(path: Path) -> tuple[int, ...] | None:
    """Return what tells a file from its replacement; None if it is absent."""
    with suppress(FileNotFoundError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


def _create(path: Path) -> None:
    """Create an empty store if there is none, in one step: an unfinished file has another name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    log = Path(f"{path}-wal")
    # A store in use has a log, too.
    is_log_left = log.exists() and log.stat().st_size > 0
    if path.exists():
        return
    if is_log_left:
        raise sqlite3.DatabaseError(f"it is missing, but its log is there: {log}")
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        new = Path(folder, "new")
        with closing(sqlite3.connect(new)) as connection:
            connection.executescript(_SCHEMA)
        with suppress(FileExistsError):  # another process was faster
            os.link(new, path)


def _check(path: Path) -> None:
    """Refuse a file that is damaged or something else, without changing it."""
    # With a log, SQLite decides: pages that are missing here may be there.
    if path.stat().st_size % _PAGE_SIZE and not Path(f"{path}-wal").exists():
        raise sqlite3.DatabaseError("it is cut off")
    # Read-only: any other connection could write to the file when it is closed.
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        *version, result = connection.execute(
            "SELECT * FROM pragma_application_id, pragma_user_version, pragma_quick_check(1)"
        ).fetchone()
    if version != [_APPLICATION_ID, _VERSION]:
        result = "it is something else, or from another version of this program"
    if result != "ok":
        raise sqlite3.DatabaseError(result.splitlines()[-1])
