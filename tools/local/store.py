"""The local store: a child process that speaks DynamoDB, its folder, and its tables as `template.yaml` defines them."""

import contextlib
import fcntl
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tools import ROOT

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    from tools.local.template import Table

_PYTHON = ROOT / ".tools/ministack/bin/python"
_PROCESS = ROOT / "tools/local/store_process.py"
_START_TIMEOUT_S = 20.0
_STOP_TIMEOUT_S = 15.0
_LOCK_TIMEOUT_S = 10.0

ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL_DYNAMODB"
_LOCAL_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
_LOCAL_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
_LOCAL_REGION = "us-east-1"
# What create_table takes of a table's and of an index's properties; the rest protects data on AWS.
_TABLE_PROPERTIES = {"AttributeDefinitions", "KeySchema", "BillingMode", "ProvisionedThroughput"}
_INDEX_PROPERTIES = {"IndexName", "KeySchema", "Projection", "ProvisionedThroughput"}


class StoreError(Exception):
    """The store cannot be used; the message is for the person at the terminal, and says what to do."""


@dataclass(frozen=True, slots=True)
class RunningService:
    """What a running `make run` tells other commands, in its folder.

    Args:
        pid: Of its process.
        base_url: Of the API.
        dynamodb_endpoint: Of its store.
        local_store: Whether that is its own child process, not what `AWS_ENDPOINT_URL_DYNAMODB` named.
        tables: Names of its tables by logical id.
    """

    pid: int
    base_url: str
    dynamodb_endpoint: str
    local_store: bool
    tables: Mapping[str, str]


class DataFolder:
    """The folder that holds the state of `make run`; one process at a time may use it.

    Args:
        path: Made when missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._service = path / "service.json"

    @property
    def state(self) -> Path:
        """Where the store keeps its state."""
        return self.path / "store"

    @contextlib.contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the folder: the lock ends with the processes that hold it, so a dead one blocks nobody.

        Yields:
            The lock's file descriptor, for a child that shares it.

        Raises:
            StoreError: Another process uses the folder, or nothing can be written to it.
        """
        with self._open_lock() as lock:
            deadline = time.monotonic() + _LOCK_TIMEOUT_S
            while not _try_lock(lock):
                lock.seek(0)
                owner = lock.read().strip()
                # A store whose parent was killed is still writing its state: that is over soon.
                if _is_alive(owner) or time.monotonic() > deadline:
                    raise StoreError(
                        f"{self.path} is in use by another `make run` (process {owner or 'unknown'}). "
                        "Stop it, or give this one a folder of its own: make run DATA=.local2"
                    )
                time.sleep(0.05)
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield lock.fileno()

    def _open_lock(self) -> IO[str]:
        try:
            self.state.mkdir(parents=True, exist_ok=True)
            return (self.path / "lock").open("a+")
        except OSError as error:
            raise StoreError(
                f"nothing can be stored in {self.path}: {error}. Name another folder: make run DATA=..."
            ) from error

    def announce(self, service: RunningService) -> None:
        """Tell other commands that the service answers now."""
        _write(self._service, json.dumps(asdict(service), indent=2) + "\n")

    def withdraw(self) -> None:
        """Take the announcement back."""
        self._service.unlink(missing_ok=True)

    def running(self) -> RunningService | None:
        """Find the running service; None when there is none."""
        try:
            service = RunningService(**json.loads(self._service.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return service if _is_alive(str(service.pid)) else None

    def check_state(self) -> None:
        """Refuse a state that the store could not read: it would start empty, and then write that down.

        Raises:
            StoreError: A file is damaged.
        """
        for file in sorted(self.state.glob("*.json")):
            try:
                if not isinstance(json.loads(file.read_bytes()), dict):
                    raise ValueError("not an object")  # noqa: TRY301, TRY004 - damaged like any other
            except ValueError as error:
                raise StoreError(
                    f"{file} is damaged ({error}). Put a good copy in its place, or start empty: make reset"
                ) from error

    def empty(self) -> None:
        """Delete the store's state; the caller holds the folder."""
        for file in self.state.glob("*"):
            file.unlink()


def _try_lock(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        pass
    return True


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file as a whole, so that a reader never sees half of it."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    _write(path, text, 0o600)


class LocalStore:
    """The store's child process.

    Args:
        folder: Held by the caller.
        lock: The folder's lock, which the child shares: it may outlive its parent for as long as it writes its state.
    """

    def __init__(self, folder: DataFolder, lock: int) -> None:
        if not _PYTHON.exists():
            raise StoreError("the local store is not installed: make install")
        folder.check_state()
        self._state = folder.state / "dynamodb.json"
        self._state_before = self._written()
        self._log = folder.path / "store.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [_PYTHON, "-I", _PROCESS, folder.state.resolve()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=[lock],
                # Ctrl-C goes to every process of the terminal; this one is stopped by its parent alone.
                start_new_session=True,
            )
        self._port: int | None = None

    @property
    def endpoint(self) -> str:
        """Its URL; waits until the port is known."""
        return f"http://127.0.0.1:{self._known_port()}"

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def _known_port(self) -> int:
        if self._port is None:
            assert self._process.stdout is not None  # noqa: S101 - it is a pipe
            line = self._process.stdout.readline()
            if not line:
                raise self._failure()
            self._port = int(line)
        return self._port

    def wait_until_ready(self) -> None:
        """Wait until it takes connections.

        Raises:
            StoreError: It ended, or took too long.
        """
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._known_port()), 1):
                return
            time.sleep(0.01)
        raise self._failure()

    def ended(self) -> bool:
        """Tell whether it has ended by itself."""
        return self._process.poll() is not None

    def wait(self) -> None:
        """Block until it ends."""
        self._process.wait()

    def stop(self) -> None:
        """Let it write its state and end; may be called again."""
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr] # both are pipes
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def check_written(self) -> None:
        """Make sure, after its end, that it has written its state: it reports a failure nowhere but in its log.

        Raises:
            StoreError: It has not.
        """
        if self._written() == self._state_before:
            raise StoreError(f"what was stored since the start is lost: it could not be written; see {self._log}")

    def _written(self) -> tuple[int, int] | None:
        """What distinguishes one writing of the state from another: each makes a new file."""
        if not self._state.is_file():
            return None
        status = self._state.stat()
        return status.st_ino, status.st_mtime_ns

    def _failure(self) -> StoreError:
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return StoreError(f"the local store did not start; the end of {self._log}: {(lines or ['(empty)'])[-1]}")


def use_local_environment(endpoint: str) -> None:
    """Point the SDK in this process at the local store, whatever the user's own settings for AWS are.

    Args:
        endpoint: The store's URL.
    """
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(_LOCAL_CREDENTIALS)
    os.environ.update(
        {
            ENDPOINT_VARIABLE: endpoint,
            # The store keeps the tables of each region apart: always the same one, then.
            "AWS_REGION": _LOCAL_REGION,
            "AWS_DEFAULT_REGION": _LOCAL_REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            # A proxy could not reach this machine's own addresses.
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }
    )


def use_external_environment(endpoint: str) -> None:
    """Point the SDK in this process at another DynamoDB, with the user's own settings.

    Args:
        endpoint: Its URL; on this machine (DynamoDB Local) it needs credentials, but takes any.
    """
    os.environ[ENDPOINT_VARIABLE] = endpoint
    if urlsplit(endpoint).hostname in _LOCAL_HOSTS and not {"AWS_ACCESS_KEY_ID", "AWS_PROFILE"} & os.environ.keys():
        os.environ.update(_LOCAL_CREDENTIALS)
    if "AWS_DEFAULT_REGION" not in os.environ and "AWS_PROFILE" not in os.environ:
        os.environ["AWS_DEFAULT_REGION"] = os.environ.get("AWS_REGION", _LOCAL_REGION)


def client(endpoint: str | None = None) -> "DynamoDBClient":
    """Make a DynamoDB client for administration.

    Args:
        endpoint: Of the store; None leaves it to the SDK.
    """
    # A quarter of a second that not every command needs.
    import boto3
    from botocore.config import Config

    config = Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 2})
    made: DynamoDBClient = boto3.client("dynamodb", endpoint_url=endpoint, config=config)
    return made


def table_request(table: "Table") -> dict[str, Any]:
    """Make the parameters of CreateTable of a table's definition in the template."""
    request = {name: value for name, value in table.properties.items() if name in _TABLE_PROPERTIES}
    for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        if kind in table.properties:
            request[kind] = [
                {name: value for name, value in index.items() if name in _INDEX_PROPERTIES}
                for index in table.properties[kind]
            ]
    return {"TableName": table.name, **request}


def create_tables(dynamodb: "DynamoDBClient", tables: Iterable["Table"]) -> None:
    """Create the tables that do not exist yet, and wait until they can be used.

    Args:
        dynamodb: Where.
        tables: Their definitions.
    """
    for table in tables:
        try:
            dynamodb.describe_table(TableName=table.name)
            continue
        except dynamodb.exceptions.ResourceNotFoundException:
            dynamodb.create_table(**table_request(table))
        dynamodb.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        expiry = table.properties.get("TimeToLiveSpecification")
        if expiry:
            dynamodb.update_time_to_live(TableName=table.name, TimeToLiveSpecification=expiry)
