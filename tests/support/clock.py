"""A clock for layer, SDK and store, so that no test has to wait."""

import time
from typing import Any

import pytest
from botocore.retries.quota import RetryQuota
from botocore.retries.standard import ExponentialBackoff, RetryContext


class Clock:
    """Replaces functions of `time`. It moves only in `advance` and `sleep`."""

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


CLOCK = Clock()
"""The clock of this process. Like a real one, it does not start again with each test."""


def install_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Install the clock; make the SDK's pauses the longest possible, and its retries unlimited."""
    CLOCK.pauses.clear()
    for name in ("time", "monotonic", "sleep"):
        monkeypatch.setattr(time, name, getattr(CLOCK, name))
    delay_amount = ExponentialBackoff.delay_amount

    def longest(backoff: Any, context: RetryContext) -> float:
        monkeypatch.setattr(backoff, "_random", lambda: 1.0)
        return delay_amount(backoff, context)

    monkeypatch.setattr(ExponentialBackoff, "delay_amount", longest)
    monkeypatch.setattr(RetryQuota, "acquire", lambda *_: True)
    return CLOCK
