"""The folder that holds the state of `make run` (DATA), which one service at a time may use."""

import fcntl
import json
import os
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

_LOCAL_URL = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\]):[0-9]+/[\w/]*")
_LOCK_TIMEOUT_S = 1.0


class FolderError(Exception):
    """The folder cannot be used; the message is for the person at the terminal, and says what to do."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a running service tells other commands; the endpoint is that of a DynamoDB which is not its own."""

    pid: int
    base_url: str
    dynamodb_endpoint: str | None = None


class DataFolder:
    """The folder, and the files in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.api_key = path / "api-key"
        self.log = path / "functions.log"
        self._store = path / "store"
        self._announcement = path / "service.json"

    @classmethod
    def from_environment(cls) -> "DataFolder":
        """Return the folder that DATA names."""
        return cls(Path(os.environ.get("DATA") or ".local"))

    @property
    def database(self) -> Path:
        """The file of the embedded store; its folder is made when it is missing."""
        with self._explained():
            self._store.mkdir(parents=True, exist_ok=True)
        return self._store / "dynamodb.sqlite"

    @property
    def reset_command(self) -> str:
        """The command that moves this folder's store away."""
        return f"make reset DATA={shlex.quote(str(self.path))}"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder; the lock ends with the process, however it ends."""
        with self._explained():
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / "lock").open("a+")
        with lock:
            deadline = time.monotonic() + _LOCK_TIMEOUT_S  # another command may be looking who holds it
            while not _try_lock(lock):
                if time.monotonic() > deadline:
                    lock.seek(0)
                    raise FolderError(
                        f"{self.path} is in use by another `make run` (process {lock.read().strip()}). "
                        "Stop it, or use another folder: make run DATA=.local2"
                    )
                time.sleep(0.05)
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            self._announcement.unlink(missing_ok=True)  # of a service that was killed
            yield

    def announce(self, announcement: Announcement) -> None:
        """Tell other commands that the service answers now."""
        _write(self._announcement, json.dumps(asdict(announcement), indent=2) + "\n")

    def running(self) -> Announcement | None:
        """Find the service that runs on this folder; one that is not on this machine is none of ours."""
        with suppress(OSError, ValueError, TypeError):
            announcement = Announcement(**json.loads(self._announcement.read_text("utf-8")))
            with (self.path / "lock").open() as lock:
                if _LOCAL_URL.fullmatch(announcement.base_url) and not _try_lock(lock):
                    return announcement
        return None

    def move_store_away(self) -> Path | None:
        """Give the store another name; None when there is no store. The caller holds the folder."""
        old = self.path / "store.old"
        if old.exists():
            old = self.path / f"store.{datetime.now(UTC):%Y%m%d-%H%M%S-%f}.old"
        return self._store.rename(old) if self._store.exists() else None

    def write_api_key(self, key: str) -> None:
        """Keep the key of this machine where only its owner can read it."""
        _write(self.api_key, key + "\n", 0o600)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise FolderError(
                f"nothing can be stored in {self.path}: {error}. Use another folder: make run DATA=..."
            ) from error


def _try_lock(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file as a whole, so that a reader never sees half of it."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)
