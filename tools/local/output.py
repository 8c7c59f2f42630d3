"""Where output goes: the functions' to a log file and `/status`, the service's to the terminal."""

import json
import logging
import queue
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import TextIOBase
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from typing import Any

from lambda_local.gateway import summary

STATUS_PAGE = Path(__file__).with_name("status.html")
# Takes what a thread wrote in one piece, as a rule a line.
Sink = Callable[[str], object]


def log_to_terminal() -> None:
    """Print what is logged from a thread: a terminal that is stopped (Ctrl-S) delays no request."""
    logging.raiseExceptions = False  # what such a terminal has no room for is dropped
    lines: queue.Queue[logging.LogRecord] = queue.Queue(10_000)
    QueueListener(lines, logging.StreamHandler(sys.stdout)).start()
    logging.basicConfig(handlers=[QueueHandler(lines)], format="%(message)s")
    logging.getLogger(__package__).setLevel(logging.INFO)


@contextmanager
def redirected(*sinks: Sink) -> Iterator[None]:
    """Give what this process writes to stdout and stderr, as functions do, to the sinks.

    What a sink cannot write, as on a full disk, is lost: no request fails for it.
    """

    def write(text: str) -> None:
        for sink in sinks:
            with suppress(OSError):
                sink(text)

    stream: Any = TextIOBase()
    stream.write = write
    with redirect_stdout(stream), redirect_stderr(stream):
        yield


def show_exception(say: Sink, log: Path, line: str) -> None:
    """Say of an exception in a line of the log what caused it, where, and where to read on."""
    if '"exception"' in line:
        # A line of another kind.
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            cause = json.loads(line)["exception"].partition(
                "\n\nThe above exception was"
            )[0]
            say(f"          {summary(cause)}; the whole traceback is in {log}")


class Metrics:
    """What `/status` shows: a sink that counts requests by their lines of metrics."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._last: deque[dict[str, Any]] = deque(maxlen=20)

    def __call__(self, line: str) -> None:
        """Take one line of output."""
        if '"_aws"' in line:
            # A line of another kind.
            with (
                self._lock,
                suppress(LookupError, TypeError, ValueError),
            ):
                request = json.loads(line)
                self._counts[request["Operation"], request["Status"]] += 1
                self._last.appendleft(request)

    def summary(self, base_url: str) -> dict[str, Any]:
        """Return how many requests had which status, and the last requests, the latest first."""
        with self._lock:
            counts = [
                {"Operation": operation, "Status": status, "Requests": requests}
                for (operation, status), requests in sorted(self._counts.items())
            ]
            return {"base_url": base_url, "counts": counts, "last": [*self._last]}
