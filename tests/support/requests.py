"""What a unit test makes and reads: requests to the functions, the time, and the log."""

import copy
import io
import json
from collections.abc import Callable
from typing import Any

from tests.support import handlers
from tests.support.handlers import EVENTS, SUCCESSES, Response


class Clock:
    """Stands in for the module `time`: it moves only when a test moves it or somebody sleeps."""

    def __init__(self) -> None:
        self.wall, self.uptime = 1_800_000_000.0, 1_000.0
        self.pauses: list[float] = []

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.uptime

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.wall += seconds
        self.uptime += seconds


def log_entries(output: io.StringIO) -> list[dict[str, Any]]:
    """Read what is printed: one JSON object on each line."""
    return [json.loads(line) for line in output.getvalue().splitlines()]


def make_event(
    folder: str, headers: dict[str, list[str]] | None = None, **members: Any
) -> dict[str, Any]:
    """Make a proxy event of a function: the plainest successful one, with other headers and members."""
    names = [name for name in SUCCESSES if handlers.function_of(EVENTS[name]) == folder]
    event: dict[str, Any] = copy.deepcopy(EVENTS[min(names, key=len)])
    event["multiValueHeaders"] |= headers or {}
    return event | members


Send = Callable[..., Response]
"""Sends a request with a valid key, unless `headers` say otherwise: takes what `make_event` takes."""
