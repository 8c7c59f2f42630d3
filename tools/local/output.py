"""Where the functions' lines go: a log file, the terminal (what is unusual), `/status`."""

import copy
import json
import logging
import threading
from collections import Counter, deque
from contextlib import suppress
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

from tools.local.folder import private

_MAX_BYTES = 20_000_000
_SECONDS = 10  # of a point of the graphs
_POINTS = 61  # one is not complete
_log = logging.getLogger(__name__)


def open_log(path: Path) -> TextIO:
    """Continue a log; one of more than 20 MB becomes PATH.1, in place of what was there."""
    if path.exists() and path.stat().st_size > _MAX_BYTES:
        path.replace(f"{path}.1")
    return open(path, "a", 1, "utf-8", "backslashreplace", opener=private)


class Output(StringIO):
    """The stdout and stderr of functions, whose structured lines come in one piece."""

    def __init__(self, log: TextIO) -> None:
        super().__init__()
        self._log, self._lock = log, threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._last: deque[dict[str, Any]] = deque(maxlen=20)
        self._recent: dict[int, dict[str, list[float]]] = {}

    def write(self, text: str) -> int:
        """Take a line. If it cannot be logged, say on a full disk, it is lost; no request fails."""
        with suppress(OSError), self._lock:
            self._log.write(text)
        try:
            line = json.loads(text) if text.startswith('{"level":') else None
        except ValueError:
            line = None
        if line:
            self._read(line)
        elif text.strip() and not text.startswith("Traceback"):
            _log.info(text.rstrip())  # what a handler prints
        return len(text)

    def _read(self, line: dict[str, Any]) -> None:
        """Show the first cause of an exception, and count a request from its line."""
        if "exception" in line:
            cause, *_ = line["exception"].split(
                "\n\nThe above exception was the direct"
            )
            _log.info("%s; see %s", cause.split("\n")[-1], self._log.name)
        if "Operation" not in line:
            return
        operation = line["Operation"]
        time = int(datetime.fromisoformat(line["timestamp"]).timestamp())
        with self._lock:
            self._counts[operation, line["Status"]] += 1
            self._last.appendleft(line)
            point = self._recent.setdefault(time - time % _SECONDS, {})
            totals = point.setdefault(operation, [0, 0])
            totals[0] += 1
            totals[1] += line["Latency"]
            if len(self._recent) > _POINTS:
                del self._recent[min(self._recent)]

    def summary(self) -> dict[str, Any]:
        """Return how many requests had which status, the last ones, and the last ten minutes.

        Of these: for every ten seconds, by their Unix time, then by operation, the number of
        requests and their total milliseconds.
        """
        with self._lock:
            counts = [
                {"Operation": operation, "Status": status, "Requests": requests}
                for (operation, status), requests in sorted(self._counts.items())
            ]
            recent = copy.deepcopy(self._recent)
            return {"counts": counts, "last": [*self._last], "recent": recent}
