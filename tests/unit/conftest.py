"""Fixtures for the unit tests: an embedded store with the template's tables, no network."""

import pytest

from tests.support.clock import Clock, install_clock
from tests.support.fault_injection import STORE, FaultyStore


@pytest.fixture(autouse=True)
def _no_network(socket_disabled: None) -> None:
    """Fail any test that opens a socket."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of layer and SDK, which only a test or a pause moves."""
    return install_clock(monkeypatch)


@pytest.fixture
def store(clock: Clock) -> FaultyStore:  # noqa: ARG001 - no pause takes time
    """The store with the events' key and animals."""
    STORE.reset()
    return STORE
