"""Where the functions' lines go: a log file, the terminal (failures), `/status` (requests)."""

import json
import logging
import threading
from collections import Counter, deque
from contextlib import suppress
from io import StringIO
from typing import Any, TextIO

from lambda_local.gateway import summary

_log = logging.getLogger(__name__)


class Output(StringIO):
    """The stdout and stderr of functions, which write a line in one piece."""

    def __init__(self, log: TextIO) -> None:
        super().__init__()
        self._log, self._lock = log, threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._last: deque[dict[str, Any]] = deque(maxlen=20)

    def write(self, text: str) -> int:
        """Take a line. If it cannot be logged, say on a full disk, it is lost; no request fails."""
        with suppress(OSError):
            self._log.write(text)
        with suppress(LookupError, TypeError, ValueError):  # a line of another kind
            line = json.loads(text)
            if "exception" in line:
                self._show(line["exception"])
            if "_aws" in line:
                self._count(line)
        return len(text)

    def _show(self, trace: str) -> None:
        """Say what caused an exception, where, and where to read more."""
        where = f"the whole traceback is in {self._log.name}"
        _log.info("          %s; %s", summary(trace), where)

    def _count(self, request: dict[str, Any]) -> None:
        """Count a request from its metrics line."""
        with self._lock:
            self._counts[request["Operation"], request["Status"]] += 1
            self._last.appendleft(request)

    def summary(self) -> dict[str, Any]:
        """Return how many requests had which status, and the last requests, the latest first."""
        with self._lock:
            counts = [
                {"Operation": operation, "Status": status, "Requests": requests}
                for (operation, status), requests in sorted(self._counts.items())
            ]
            return {"counts": counts, "last": [*self._last]}
