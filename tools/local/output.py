"""Write the functions' lines to a log file and, if they are unusual, to the terminal."""

import json
import logging
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import TextIO

_log = logging.getLogger(__name__)


def open_log(path: Path) -> TextIO:
    """Begin a log, in place of the last start's."""
    return path.open("w", buffering=1, encoding="utf-8", errors="backslashreplace")


class Output(StringIO):
    """The stdout and stderr of functions, whose structured lines come in one piece."""

    def __init__(self, log: TextIO) -> None:
        super().__init__()
        self._file = log

    def write(self, text: str) -> int:
        """Take a line. If it cannot be logged, say on a full disk, it is lost; no request fails."""
        with suppress(OSError):
            self._file.write(text)
        try:
            line = json.loads(text) if text.startswith('{"level":') else None
        except ValueError:
            line = None
        if line:
            # The first of a chain is the cause.
            chain = line.get("exception", "").split("\n\nThe above exception was")
            if chain != [""]:
                _log.info("%s; see %s", chain[0].split("\n")[-1], self._file.name)
        elif text.strip() and not text.startswith("Traceback"):
            _log.info(text.rstrip())  # what a handler prints
        return len(text)
