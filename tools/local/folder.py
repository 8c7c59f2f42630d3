"""The folder with the state of `make run` (DATA), which only one service may use at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.local import LocalError


class DataFolder:
    """The folder, by default the one that DATA names; its files are only for their owner."""

    def __init__(self, path: Path | None = None) -> None:
        # The shell does not expand the ~ in `make run DATA=~/x`.
        self.path = (path or Path(os.environ.get("DATA") or ".local")).expanduser()
        self.api_key = self.path / "api-key"
        self.log = self.path / "functions.log"
        self.store = self.path / "store"
        self.database = self.store / "dynamodb.sqlite"

    @contextmanager
    def held_by_service(self) -> Iterator[None]:
        """Hold the folder as its only service; LocalError if that cannot be done.

        Meanwhile this process creates only files that their owner alone can read: they hold keys
        or clients' data.
        """
        others = os.umask(0o077)
        try:
            with self._lock():
                yield
        finally:
            os.umask(others)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # `git add` is not to take the API key and the animals. Others' files are left alone.
            if not any(self.path.iterdir()):
                (self.path / ".gitignore").write_text("*\n", "utf-8")
            file = (self.path / "service").open("a")
        except OSError as error:
            raise LocalError(
                f"DATA={self.path} cannot be used: {error.strerror}. It is a folder of yours, such"
                " as DATA=.local2"
            ) from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LocalError(
                    f"DATA={self.path} is in use by `make run` or `make sam-local`. Stop that"
                    " first, or use another folder and port: DATA=.local2 PORT=3001"
                ) from None
            yield

    def refuse_other_version(self) -> None:
        """Refuse a store that another version has left: it would be passed over in silence."""
        if any(self.store.glob("*")) and not self.database.exists():
            raise LocalError(
                f"{self.store} has the store of another version of this program. Use another"
                " folder (DATA=.local2), or empty the store: make reset (with the same DATA)"
            )
