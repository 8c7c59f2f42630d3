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

from tools.local import LocalError

_LOCAL_URL = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\]):[0-9]+/[\w/]*")
_LOCK_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a running service tells other commands."""

    pid: int
    base_url: str


class DataFolder:
    """The folder, by default the one that DATA names, and the files in it."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or Path(os.environ.get("DATA") or ".local")
        self.api_key = self.path / "api-key"
        self.log = self.path / "functions.log"
        self.store = self.path / "store"
        self.database = self.store / "dynamodb.sqlite"
        self.reset_command = f"make reset DATA={shlex.quote(str(self.path))}"
        self._announcement = self.path / "service.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder; the lock ends with the process, however it ends."""
        try:
            self.store.mkdir(parents=True, exist_ok=True)
            lock = (self.path / "lock").open("a+")
        except OSError as error:
            raise LocalError(
                f"nothing can be stored in {self.path}: {error}. Use another: make run DATA=..."
            ) from error
        with lock:
            deadline = time.monotonic() + _LOCK_TIMEOUT_S  # another command may be looking whether it is held
            while not _try_lock(lock):
                if time.monotonic() > deadline:
                    lock.seek(0)
                    raise LocalError(
                        f"{self.path} is in use by another `make run` (process {lock.read().strip()}). "
                        "Stop it, or use another folder: make run DATA=.local2"
                    )
                time.sleep(0.05)
            self._announcement.unlink(missing_ok=True)  # of a service that was killed
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield

    def announce(self, base_url: str) -> None:
        """Tell other commands that the service answers now."""
        self.write(self._announcement, json.dumps(asdict(Announcement(os.getpid(), base_url))))

    def running(self) -> Announcement | None:
        """Find the service that runs on this folder; what names another machine is not ours."""
        with suppress(OSError, ValueError, TypeError):
            announcement = Announcement(**json.loads(self._announcement.read_text("utf-8")))
            with (self.path / "lock").open() as lock:
                if _LOCAL_URL.fullmatch(announcement.base_url) and not _try_lock(lock):
                    return announcement
        return None

    def move_store_away(self) -> Path:
        """Give the store another name; the caller holds the folder."""
        old = self.path / "store.old"
        if old.exists():
            old = self.path / f"store.{datetime.now(UTC):%Y%m%d-%H%M%S-%f}.old"
        return self.store.rename(old)

    def write(self, path: Path, text: str) -> None:
        """Write a file that only its owner can read, as a whole: a reader never sees half of it."""
        new = path.with_name(f".{path.name}.new")
        new.unlink(missing_ok=True)
        new.touch(0o600)
        new.write_text(f"{text}\n", "utf-8")
        new.replace(path)


def _try_lock(lock: IO[str]) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
