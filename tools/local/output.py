"""Where output goes: the functions' to a log file and `/status`, the service's own to the terminal, from a thread."""

import json
import logging
import os
import queue
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TextIO, cast

Sink = Callable[[str], object]
"""Takes one line without its line feed, from whichever thread has written it."""

_MOST_WAITING = 10_000
_TRACEBACK = "Traceback (most recent call last)"
_PLACE = re.compile(r'File "((?!<)(?:(?!site-packages|lib/python3)[^"])+)", line (\d+)')


class Terminal(logging.Handler):
    """Print lines from a thread of its own: a terminal that is stopped (Ctrl-S) delays no request."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._lines: queue.Queue[str | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._print, args=[stream], daemon=True)
        self._thread.start()

    def say(self, text: str | None) -> None:
        """Print a text soon; what a stopped terminal has no room for is dropped."""
        with suppress(queue.Full):
            self._lines.put_nowait(text)

    def emit(self, record: logging.LogRecord) -> None:
        """Print a log record, of the web server for instance."""
        self.say(self.format(record))

    def close(self) -> None:
        """Wait a moment for what has not been printed yet."""
        self.say(None)
        self._thread.join(timeout=1)

    def _print(self, stream: TextIO) -> None:
        for line in iter(self._lines.get, None):
            with suppress(OSError):  # a terminal that is gone is no reason to fail
                print(line, file=stream, flush=True)


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
def redirected(*sinks: Sink, log: Path | None = None) -> Iterator[None]:
    """Give what this process writes to stdout and stderr, as functions do, to the sinks and a file, line by line."""
    with (log or Path(os.devnull)).open("wb", buffering=0) as file:

        def write(line: str) -> None:
            os.write(file.fileno(), f"{line}\n".encode(errors="backslashreplace"))

        stream = cast("TextIO", _Lines((write, *sinks)))
        with redirect_stdout(stream), redirect_stderr(stream):
            yield


def summary(trace: str) -> str:
    """Shorten a traceback to its last line and its last place in code that is not a library's."""
    last = trace.strip().rpartition("\n")[2]
    places = _PLACE.findall(trace)
    return f"{last} ({places[-1][0]}, line {places[-1][1]})" if places else last


def errors(say: Sink, log: Path) -> Sink:
    """Make a sink that shows, of each log line with a traceback, what happened, where, and where to read on."""

    def show(line: str) -> None:
        if _TRACEBACK in line:
            with suppress(AttributeError, IndexError, ValueError):  # a line of another kind
                traces = [value for value in json.loads(line).values() if str(value).startswith(_TRACEBACK)]
                say(f"          {summary(traces[0])}; the whole traceback is in {log}")

    return show
