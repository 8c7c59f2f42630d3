"""Fixtures for the unit tests: an embedded store with the template's tables, no network."""

import io
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
import pytest_socket

from tests.support import handlers
from tests.support.fault_injection import FaultyStore
from tests.support.requests import Clock, Send, install_clock, make_event

for function in handlers.TEMPLATE.functions.values():
    handlers.handler(function.code.name)

from animal_store import dynamodb, telemetry  # noqa: E402 - they read the environment


@pytest.fixture(autouse=True)
def no_network() -> Iterator[None]:
    """Fail any test that opens a socket to another machine or process."""
    pytest_socket.disable_socket(allow_unix_socket=True)
    yield
    pytest_socket.enable_socket()


@pytest.fixture(autouse=True)
def forget_keys() -> Callable[[], None]:
    """Begin with empty caches of keys; return the function that empties them."""
    handlers.forget_keys()
    return handlers.forget_keys


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock of layer and SDK."""
    return install_clock(monkeypatch)


@pytest.fixture
def invocation(clock: Clock) -> dynamodb.Invocation:
    """Return an invocation of 10 seconds, for code that is called without its handler."""
    invocation = dynamodb.Invocation(deadline=clock.uptime + 10)
    dynamodb.invocation.set(invocation)
    return invocation


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Return what the functions print: log lines, which are the metrics too."""
    output = io.StringIO()
    monkeypatch.setattr(telemetry, "sys", SimpleNamespace(stdout=output))
    monkeypatch.setattr(telemetry.logger().registered_handler, "stream", output)
    return output


@pytest.fixture
def store() -> Iterator[FaultyStore]:
    """Return a store with the events' key and animals; the SDK must find each call valid."""
    store = FaultyStore(dynamodb.client, handlers.new_database(pets=True))
    yield store
    store.detach()
    handlers.discard(store.database)
    assert store.invalid == []


@pytest.fixture
def send(store: FaultyStore) -> Send:  # noqa: ARG001 - the store that the functions call
    """Return a function that sends a request to a function."""
    return lambda folder, **differences: handlers.invoke(
        make_event(folder, **differences)
    )
