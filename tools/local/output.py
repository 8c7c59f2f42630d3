"""Where the functions' lines go: a log file, the terminal (what is unusual), `/status`."""

import json
import logging
import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from io import StringIO
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from lambda_local.gateway import summary

_SECONDS = 10  # of a point of the graphs
_POINTS = 60
_log = logging.getLogger(__name__)


class LogFile(RotatingFileHandler):
    """A file that outlives the service; of all that was written, one to two times a size is kept.

    What is older than `functions.log.1` is deleted.
    """

    terminator = ""

    def __init__(self, path: Path, size: int = 20_000_000) -> None:
        super().__init__(path, "a", size, 1, "utf-8", errors="backslashreplace")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - logging's names
        """Let the caller know, instead of writing to stderr."""
        raise  # noqa: PLE0704 - called while the error is handled


@dataclass
class _Recent:
    """Requests and their total milliseconds by operation, in ten seconds from a Unix time."""

    begin: int
    requests: Counter[str] = field(default_factory=Counter)
    milliseconds: Counter[str] = field(default_factory=Counter)


class Output(StringIO):
    """The stdout and stderr of functions, whose structured lines come in one piece."""

    def __init__(self, log: LogFile) -> None:
        super().__init__()
        self._log, self._lock = log, threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._last: deque[dict[str, Any]] = deque(maxlen=20)
        self._recent: deque[_Recent] = deque(maxlen=_POINTS)

    def write(self, text: str) -> int:
        """Take a line. If it cannot be logged, say on a full disk, it is lost; no request fails."""
        where = f"the whole traceback is in {self._log.baseFilename}"
        try:
            self._log.handle(logging.makeLogRecord({"msg": text}))
        except OSError as error:
            where = f"the whole traceback is lost: {error}"
        try:
            line = json.loads(text)
            structured = "level" in line
        except (TypeError, ValueError):
            structured = False
        if structured:
            self._read(line, where)
        elif text.strip() and not text.startswith("Traceback"):
            _log.info("          %s", text.rstrip())  # what a handler prints
        return len(text)

    def _read(self, line: dict[str, Any], where: str) -> None:
        """Show the first cause of an exception, and count a request from its metrics line."""
        if "exception" in line:
            cause = line["exception"].partition(
                "\n\nThe above exception was the direct"
            )[0]
            _log.info("          %s; %s", summary(cause), where)
        if "_aws" in line:
            with self._lock:
                self._count(line)

    def _count(self, request: dict[str, Any]) -> None:
        operation = request["Operation"]
        begin = request["_aws"]["Timestamp"] // 1000 // _SECONDS * _SECONDS
        self._counts[operation, request["Status"]] += 1
        self._last.appendleft(request)
        if not self._recent or self._recent[-1].begin < begin:
            self._recent.append(_Recent(begin))
        self._recent[-1].requests[operation] += 1
        self._recent[-1].milliseconds[operation] += request["Latency"]

    def summary(self) -> dict[str, Any]:
        """Return how many requests had which status, the last ones, and rates and latencies.

        Each rate (requests per second) and mean latency (ms) is of ten seconds, begun at `Time`.
        """
        with self._lock:
            counts = [
                {"Operation": operation, "Status": status, "Requests": requests}
                for (operation, status), requests in sorted(self._counts.items())
            ]
            recent = [
                {
                    "Time": each.begin,
                    "Operation": operation,
                    "Rate": requests / _SECONDS,
                    "Latency": each.milliseconds[operation] / requests,
                }
                for each in self._recent
                for operation, requests in each.requests.items()
            ]
            return {"counts": counts, "last": [*self._last], "recent": recent}
