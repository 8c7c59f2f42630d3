"""The world of the unit tests: an embedded store with the tables of template.yaml, a clock, and no network."""

import copy
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import pytest_socket
from botocore import endpoint

from tests import functions
from tests.example_key import EXAMPLE_KEY
from tests.fault_injection import Wire
from tests.functions import EVENTS, SUCCESSES, Context, Response

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    from tools.local.dynamodb import Database

from animal_store import auth, catalogue, dynamodb, operation, telemetry

# Before any test: one of the local service loads the layer again, and handlers loaded after it would use another copy.
for function in functions.TEMPLATE.functions.values():
    functions.handler(function.code.name)


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


class Clock:
    """Stands in for the module `time`: it moves only when a test moves it or somebody sleeps."""

    def __init__(self) -> None:
        self.wall = 1_800_000_000.0
        self.uptime = 1_000.0
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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Give the clock of the layer and of the SDK's pauses between retries."""
    clock = Clock()
    for module in (auth, catalogue, dynamodb, operation, endpoint):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def budget(clock: Clock) -> dynamodb.Budget:
    """Give an invocation's budget of 10 seconds to code that is called without its handler."""
    budget = dynamodb.Budget(deadline=clock.uptime + 10)
    dynamodb.budget.set(budget)
    return budget


class Output:
    """What the functions print: one JSON object on each line."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._text = ""

    @property
    def text(self) -> str:
        self._text += self._capsys.readouterr().out
        return self._text

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The lines of requests, which have their metrics."""
        return [line for line in self.lines if "_aws" in line]


class _Stdout(io.TextIOBase):
    """What stdout is at the moment, not what it was when the logger was made."""

    def write(self, text: str) -> int:
        return sys.stdout.write(text)


@pytest.fixture
def output(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Output:
    """Give what is printed to the function's log group: log lines and metrics."""
    monkeypatch.setattr(telemetry.logger().registered_handler, "stream", _Stdout())
    return Output(capsys)


@pytest.fixture
def database() -> "Iterator[Database]":
    """Make a store with the template's tables, which has the key of the events and nothing else."""
    database = functions.new_database()
    yield database
    functions.discard(database)


@pytest.fixture
def tables(database: "Database") -> "DynamoDBClient":
    """Give a client of the store that is not the layer's."""
    return functions.client(database)


@pytest.fixture
def wire(database: "Database") -> Iterator[Wire]:
    """Give the layer's way to the store; all that it sends there must be valid by the SDK's own description."""
    wire = Wire(dynamodb.client, database)
    yield wire
    wire.detach()
    assert wire.invalid == []


@dataclass(frozen=True)
class Call:
    """A request, by what differs from the plainest successful event of its function's folder."""

    folder: str
    query: Mapping[str, list[str]] | None = None
    body: str | None = None
    headers: Mapping[str, list[str]] = field(default_factory=dict)
    path: Mapping[str, str] = field(default_factory=dict)

    def event(self) -> dict[str, Any]:
        """Make the proxy event."""
        names = [name for name in SUCCESSES if functions.function_of(EVENTS[name]) == self.folder]
        event: dict[str, Any] = copy.deepcopy(EVENTS[min(names, key=len)])
        event["multiValueHeaders"] |= self.headers
        event["multiValueQueryStringParameters"] = self.query
        event["body"] = self.body
        event["pathParameters"] = {**event["pathParameters"], **self.path} if event["pathParameters"] else None
        return event


Ask = Callable[..., Response]
"""Sends a request with a valid key, unless `headers` say otherwise: the function's folder, and what `Call` takes."""


@pytest.fixture
def ask(wire: Wire) -> Ask:  # noqa: ARG001 - on which the functions' calls arrive at the store
    """Give what sends requests to the functions."""
    return lambda folder, **differences: functions.invoke(Call(folder, **differences).event())


@pytest.fixture
def context() -> Context:
    """Give Lambda's context object."""
    return Context()


@pytest.fixture
def api_key(database: "Database") -> str:  # noqa: ARG001 - which has it
    """Give the valid API key of the events."""
    return EXAMPLE_KEY
