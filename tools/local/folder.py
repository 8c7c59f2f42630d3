"""The folder that holds the state of `make run` (DATA), which one service at a time may use."""

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tools.local import LocalError

_LOCAL_URL = re.compile(r"http://127\.0\.0\.1:[0-9]+/[\w/]*")


class DataFolder:
    """The folder, by default the one that DATA names, and the files in it."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or Path(os.environ.get("DATA") or ".local")
        self.api_key = self.path / "api-key"
        self.log = self.path / "functions.log"
        self.store = self.path / "store"
        self.database = self.store / "dynamodb.sqlite"
        self._service = self.path / "service"

    @contextmanager
    def held_by_service(self) -> Iterator[IO[str]]:
        """Hold the folder as its one service; a base URL in the file says that it answers."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = self._service.open("a+")
        except OSError as error:
            raise LocalError(
                f"nothing can be stored in {self.path}: {error}. Use another: DATA=..."
            ) from error
        with file:
            for _ in range(20):  # another command may be looking whether it is held
                if _try_lock(file, fcntl.LOCK_EX):
                    file.truncate(0)
                    yield file
                    return
                time.sleep(0.05)
            service = self.base_url() or "which is starting"
            raise LocalError(
                f"{self.path} is in use by `make run` or `make sam-local` ({service}). "
                "Stop that first, or use another folder: DATA=.local2"
            )

    def base_url(self) -> str | None:
        """Find the service on this folder that answers: on this machine, as keys are sent to it."""
        with suppress(OSError, UnicodeError), self._service.open() as file:
            if not _try_lock(file, fcntl.LOCK_SH) and _LOCAL_URL.fullmatch(
                url := file.read()
            ):
                return url
        return None


def _try_lock(file: IO[str], kind: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(file, kind | fcntl.LOCK_NB)
        return True
    return False
