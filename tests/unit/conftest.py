"""The world of the unit tests: an embedded store with the tables of template.yaml, a clock, and no network."""

import io
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
import pytest_socket
from botocore import endpoint
from botocore.retries.standard import ExponentialBackoff

from tests.support import handlers
from tests.support.fault_injection import Wire
from tests.support.requests import Ask, Clock, event_of

for function in handlers.TEMPLATE.functions.values():
    handlers.handler(function.code.name)

from animal_store import auth, catalogue, dynamodb, operation, telemetry  # noqa: E402 - they read the environment


@pytest.fixture(autouse=True)
def no_network() -> Iterator[None]:
    """Fail any test that opens a socket to another machine or process."""
    pytest_socket.disable_socket(allow_unix_socket=True)
    yield
    pytest_socket.enable_socket()


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make the execution environment a new one, that has looked no key up; give what does so again."""

    def forget() -> None:
        monkeypatch.setattr(auth, "_known", auth._Cache())
        monkeypatch.setattr(auth, "_unknown", auth._Cache())

    forget()
    return forget


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Give the clock of the layer and of the SDK's pauses between retries, which are as long as they ever are."""
    clock = Clock()
    longest = property(
        lambda _: lambda: 1.0, lambda backoff, value: vars(backoff).update(_random=value)
    )
    monkeypatch.setattr(ExponentialBackoff, "_random", longest, raising=False)
    for module in (auth, catalogue, dynamodb, operation, endpoint):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def invocation(clock: Clock) -> dynamodb.Invocation:
    """Give an invocation's budget of 10 seconds to code that is called without its handler."""
    invocation = dynamodb.Invocation(deadline=clock.uptime + 10)
    dynamodb.invocation.set(invocation)
    return invocation


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Give what is printed to the function's log group: log lines and metrics."""
    output = io.StringIO()
    monkeypatch.setattr(telemetry, "sys", SimpleNamespace(stdout=output))
    monkeypatch.setattr(telemetry.logger().registered_handler, "stream", output)
    return output


@pytest.fixture
def wire() -> Iterator[Wire]:
    """Give the layer's way to a store with the events' key and animals; what it sends must be valid to the SDK."""
    wire = Wire(dynamodb.client, handlers.new_database(pets=True))
    yield wire
    wire.detach()
    handlers.discard(wire.database)
    assert wire.invalid == []


@pytest.fixture
def ask(wire: Wire) -> Ask:  # noqa: ARG001 - on which the functions' calls arrive at the store
    """Give what sends requests to the functions."""
    return lambda folder, **differences: handlers.invoke(event_of(folder, **differences))
