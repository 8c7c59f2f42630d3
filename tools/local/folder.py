"""The folder with the state of `make run` (DATA), which only one service may use at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tools.local import LocalError


def base_url(port: object) -> str:
    """Return the address of a service on this machine."""
    return f"http://127.0.0.1:{port}/v1"


class DataFolder:
    """The folder, by default the one that DATA names, and the files in it: only for its owner."""

    def __init__(self, path: Path | None = None) -> None:
        # A shell leaves the ~ of DATA=~/x to `make`.
        self.path = (path or Path(os.environ.get("DATA") or ".local")).expanduser()
        self.api_key = self.path / "api-key"
        self.log = self.path / "functions.log"
        self.store = self.path / "store"
        self.database = self.store / "dynamodb.sqlite"

    @contextmanager
    def held_by_service(self) -> Iterator[IO[str]]:
        """Hold the folder as its only service; the file gets the port once that is answering."""
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / "service", "a+", opener=private) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LocalError(
                    f"{self.path} is in use by `make run` or `make sam-local`. "
                    "Stop that first, or use another folder: DATA=.local2"
                ) from None
            file.truncate(0)
            yield file


def private(path: str, flags: int) -> int:
    """Open a file that only its owner can read, because it holds a key or clients' data."""
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)  # an older one may have had another mode
    return descriptor


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whoever has opened an older one."""
    path.unlink(missing_ok=True)
    path.touch(0o600)
    path.write_text(text, "utf-8")
