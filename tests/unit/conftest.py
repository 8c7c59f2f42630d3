"""Fixtures for the unit tests: an embedded store with the template's tables, no network."""

import math
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.clock import Clock, install_clock
from tests.support.fault_injection import FaultyStore

from animal_store import invocation, telemetry  # isort: skip - the environment comes first


@pytest.fixture(autouse=True)
def _no_network(socket_disabled: None) -> None:
    """Fail any test that opens a socket."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of layer and SDK, which only a test or a pause moves."""
    return install_clock(monkeypatch)


@pytest.fixture
def store(clock: Clock) -> Iterator[FaultyStore]:  # noqa: ARG001 - no pause takes time
    """The store with the events' key and animals; the test runs in an invocation without end."""
    invocation.current.set(invocation.Invocation(math.inf))
    with closing(FaultyStore()) as store:
        yield store


@pytest.fixture
def output(capsys: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
    """The output of the functions: a line for each request, and one for each failure."""
    handler: Any = telemetry.logger().registered_handler
    # `print` looks sys.stdout up at each call: pytest replaces it between setup and test.
    handler.stream = SimpleNamespace(write=lambda text: print(text, end=""))
    return capsys
