"""Where output goes: the functions' to a log file and `/status`, the service's own to the terminal, from a thread."""

import json
import logging
import queue
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TextIO, cast

Sink = Callable[[str], None]
"""Takes one line without its line feed, from whichever thread has written it."""

_MOST_WAITING = 10_000
_FRAME = re.compile(r'File "((?!<)(?:(?!site-packages|lib/python3)[^"])+)", line (\d+)')
_TRACEBACK = "Traceback (most recent call last)"


class Terminal(logging.Handler):
    """Print lines from a thread of its own: a terminal that is stopped (Ctrl-S) delays no request."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._lines: queue.Queue[str | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._print, daemon=True)
        self._thread.start()

    def say(self, text: str) -> None:
        """Print a text soon; what a stopped terminal has no room for is dropped."""
        with suppress(queue.Full):
            self._lines.put_nowait(text)

    def emit(self, record: logging.LogRecord) -> None:
        """Print a log record, of the web server for instance."""
        self.say(self.format(record))

    def close(self) -> None:
        """Wait a moment for what has not been printed yet."""
        with suppress(queue.Full):
            self._lines.put_nowait(None)
        self._thread.join(timeout=1)

    def _print(self) -> None:
        while (line := self._lines.get()) is not None:
            with suppress(OSError):  # a terminal that is gone is no reason to fail
                print(line, file=self._stream, flush=True)


class _Lines:
    """A text stream that cuts what is written into lines; each thread has its own line, so that none cuts another's."""

    def __init__(self, sinks: tuple[Sink, ...]) -> None:
        self._sinks = sinks
        self._pending = threading.local()

    def write(self, text: str) -> int:
        *lines, self._pending.text = (getattr(self._pending, "text", "") + text).split("\n")
        for line in lines:
            for sink in self._sinks:
                sink(line)
        return len(text)

    def flush(self) -> None:
        """Do nothing: each line has gone to the sinks."""


@contextmanager
def redirected(*sinks: Sink) -> Iterator[None]:
    """Give what this process writes to stdout and stderr, as functions do, to the sinks line by line."""
    stream = cast("TextIO", _Lines(sinks))
    with redirect_stdout(stream), redirect_stderr(stream):
        yield


@contextmanager
def log_file(path: Path) -> Iterator[Sink]:
    """Open the log of one run."""
    lock = threading.Lock()
    with path.open("w", encoding="utf-8", errors="backslashreplace", buffering=1) as file:

        def write(line: str) -> None:
            with lock:
                file.write(f"{line}\n")

        yield write


def summary(trace: str) -> str:
    """Shorten a traceback to its last line and its last place in code that is not a library's."""
    last = trace.strip().rpartition("\n")[2]
    frames = _FRAME.findall(trace)
    return f"{last} ({frames[-1][0]}, line {frames[-1][1]})" if frames else last


def errors(say: Sink, log: Path) -> Sink:
    """Make a sink that shows, of each log line with a traceback, what happened, where, and where to read on."""

    def show(line: str) -> None:
        if _TRACEBACK not in line or not line.startswith("{"):
            return
        with suppress(ValueError):
            for value in json.loads(line).values():
                if isinstance(value, str) and value.startswith(_TRACEBACK):
                    say(f"          {summary(value)}; the whole traceback is in {log}")

    return show
