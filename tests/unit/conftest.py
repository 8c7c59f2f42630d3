"""Fixtures for the unit tests: an embedded store with the template's tables, no network."""

import time

import pytest
from botocore.retries.quota import RetryQuota

from tests.support.clock import CLOCK, Clock
from tests.support.fault_injection import STORE, FaultyStore


@pytest.fixture(autouse=True)
def _no_network(socket_disabled: None) -> None:
    """Let no test open a socket."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Install the clock, and let the SDK retry without a quota."""
    CLOCK.pauses.clear()
    for name in ("time", "monotonic", "sleep"):
        monkeypatch.setattr(time, name, getattr(CLOCK, name))
    monkeypatch.setattr(RetryQuota, "acquire", lambda *_: True)
    return CLOCK


@pytest.fixture
def store(clock: Clock) -> FaultyStore:  # noqa: ARG001 - makes pauses take no time
    """A store that is ready for `events/*.json`."""
    STORE.reset()
    return STORE
