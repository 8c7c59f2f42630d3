"""Fixtures for the unit tests: an embedded store with the template's tables, no network."""

import time
from typing import Any

import pytest
from botocore.retries.quota import RetryQuota
from botocore.retries.standard import ExponentialBackoff, RetryContext

from tests.support.clock import CLOCK, Clock
from tests.support.fault_injection import STORE, FaultyStore


@pytest.fixture(autouse=True)
def _no_network(socket_disabled: None) -> None:
    """Fail any test that opens a socket."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
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


@pytest.fixture
def store(clock: Clock) -> FaultyStore:  # noqa: ARG001 - no pause takes time
    """The store with the events' key and animals."""
    STORE.reset()
    return STORE
