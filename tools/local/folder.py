"""A folder with local data, such as DATA of `make run`; only one service at a time may use it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools import CommandError


class DataFolder:
    """A data folder, by default the one that DATA names. Only its owner can read the data."""

    def __init__(self, path: Path | None = None) -> None:
        # Expand the ~ in `make run DATA=~/x`, because not every shell does.
        self.path = (path or Path(os.environ.get("DATA") or ".local")).expanduser()
        self.api_key = self.path / "api-key"
        self.log = self.path / "functions.log"
        self.store = self.path / "store"
        # The number in the name is the version of the file's format.
        self.database = self.store / "dynamodb-3.sqlite"

    @contextmanager
    def lock_for_service(self) -> Iterator[None]:
        """Create the folder if it is missing, and lock it until the `with` block ends.

        Raises:
            CommandError: The folder cannot be used, or another service has locked the folder.
        """
        try:
            self.path.mkdir(0o700, parents=True, exist_ok=True)
            self.log.touch(0o600)
            file = (self.path / "service").open("a")
        except OSError as error:
            raise CommandError(
                f"{self.path} cannot be used: {error.strerror}. Name a folder of your own,"
                " such as DATA=.local2"
            ) from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CommandError(
                    f"{self.path} is in use by another `make run` or `make sam-local`. Stop that"
                    " command, or use another folder and port: DATA=.local2 PORT=3001"
                ) from None
            yield
