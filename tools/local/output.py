"""What the functions write to stdout and stderr, JSON logs and EMF metrics: each line goes to sinks.

On AWS these lines go to the function's log group. `OutputLines.sinks` is where a reader of logs or metrics joins in.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO, cast

Sink = Callable[[str, str], None]
"""Takes the logical id of a function and one line without its line feed; is called from the function's thread."""

_function: ContextVar[str | None] = ContextVar("function", default=None)


class OutputLines:
    """Takes the place of `sys.stdout` and `sys.stderr`, and cuts what functions write into lines for the sinks.

    Args:
        sinks: Each gets each line.
    """

    def __init__(self, *sinks: Sink) -> None:
        self.sinks = list(sinks)

    def install(self) -> None:
        """Take the place of the two streams, for the rest of the process."""
        sys.stdout = cast("TextIO", _Stream(sys.stdout, self))
        sys.stderr = cast("TextIO", _Stream(sys.stderr, self))

    @contextmanager
    def of(self, function: str) -> Iterator[None]:
        """Count what this thread writes as output of a function."""
        token = _function.set(function)
        try:
            yield
        finally:
            _function.reset(token)

    def emit(self, function: str, line: str) -> None:
        """Give one line to each sink."""
        for sink in self.sinks:
            sink(function, line)


class _Stream:
    """A text stream that tells the functions' output from everybody else's; the rest is the real stream's."""

    def __init__(self, real: TextIO, lines: OutputLines) -> None:
        self._real = real
        self._lines = lines
        self._pending = threading.local()  # the beginning of a line, thread by thread, so that none is cut by another

    def write(self, text: str) -> int:
        function = _function.get()
        if function is None:
            return self._real.write(text)
        *lines, self._pending.text = (getattr(self._pending, "text", "") + text).split("\n")
        for line in lines:
            self._lines.emit(function, line)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class LogFile:
    """A sink that writes the lines to a file, those of one run.

    Args:
        path: Of the file.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", errors="backslashreplace", buffering=1)
        self._lock = threading.Lock()

    def __call__(self, function: str, line: str) -> None:
        """Append one line."""
        with self._lock:
            self._file.write(f"{function} {line}\n")
