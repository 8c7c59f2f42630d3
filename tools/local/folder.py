"""The folder with the state of `make run` (DATA), which only one service may use at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.local import LocalError


def base_url(port: object) -> str:
    """Return the address of a service on this machine."""
    return f"http://127.0.0.1:{port}/v1"


class DataFolder:
    """The folder, by default the one that DATA names; its files are only for their owner."""

    def __init__(self, path: Path | None = None) -> None:
        # A shell leaves the ~ of DATA=~/x to `make`.
        self.path = (path or Path(os.environ.get("DATA") or ".local")).expanduser()
        self.api_key = self.path / "api-key"
        self.log = self.path / "functions.log"
        self.store = self.path / "store"
        self.database = self.store / "dynamodb.sqlite"

    @contextmanager
    def held_by_service(self) -> Iterator[None]:
        """Hold the folder as its only service.

        Meanwhile this process creates only files that their owner alone can read: they hold keys
        or clients' data.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        others = os.umask(0o077)
        try:
            with (self.path / "service").open("a") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise LocalError(
                        f"{self.path} is in use by `make run` or `make sam-local`. "
                        "Stop that first, or use another folder: DATA=.local2"
                    ) from None
                yield
        finally:
            os.umask(others)
