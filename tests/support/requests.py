"""What tests make and read: requests to the functions, the time, and the log."""

import copy
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore import endpoint
from botocore.retries.standard import ExponentialBackoff

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


def install_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Give layer and SDK a clock; the SDK's pauses between retries are as long as can be."""
    from animal_store import auth, catalogue, dynamodb, operation

    clock = Clock()
    for module in (auth, catalogue, dynamodb, operation, endpoint):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(
        ExponentialBackoff,
        "delay_amount",
        lambda _, context: 2 ** (context.attempt_number - 1),
    )
    return clock


def log_entries(output: io.StringIO) -> list[dict[str, Any]]:
    """Read what is printed: one JSON object on each line."""
    return [json.loads(line) for line in output.getvalue().splitlines()]


def make_event(
    folder: str, headers: dict[str, list[str]] | None = None, **members: Any
) -> dict[str, Any]:
    """Change headers and members of the plainest event that a function answers with success."""
    names = [name for name in SUCCESSES if handlers.function_of(EVENTS[name]) == folder]
    event: dict[str, Any] = copy.deepcopy(EVENTS[min(names, key=len)])
    event["multiValueHeaders"] |= headers or {}
    return event | members


Send = Callable[..., Response]
"""Sends what `make_event` makes of the same arguments."""
