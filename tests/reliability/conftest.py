"""Fixtures for the reliability tests: the store that fails, and a clock."""

from collections.abc import Iterator

import pytest

from tests.support import handlers
from tests.support.fault_injection import FaultyStore
from tests.support.requests import Clock, install_clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock of layer and SDK: no pause takes time."""
    return install_clock(monkeypatch)


@pytest.fixture
def store() -> Iterator[FaultyStore]:
    """Return a store with the events' key and animals."""
    from animal_store import dynamodb  # it reads the environment that `handlers` makes

    handlers.forget_keys()
    store = FaultyStore(dynamodb.client, handlers.new_database(pets=True))
    yield store
    store.detach()
    handlers.discard(store.database)
