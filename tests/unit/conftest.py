"""The world of the unit tests: moto in place of DynamoDB, tables as template.yaml defines them, and no network."""

import copy
import importlib.util
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import boto3
import pytest
import pytest_socket
from botocore import endpoint
from moto import mock_aws

from tests.unit.fault_injection import Wire
from tools import ROOT
from tools.local import template

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

TEMPLATE = template.load(ROOT / "template.yaml", {"Stage": "staging"})

# The layer reads its environment and makes its client on import: all of this comes first.
for function in TEMPLATE.functions.values():
    os.environ.update(function.environment)
os.environ.update(AWS_DEFAULT_REGION=template.REGION, AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing")
os.environ.pop("AWS_ENDPOINT_URL_DYNAMODB", None)

from animal_store import api_key as api_keys  # noqa: E402
from animal_store import auth, catalogue, dynamodb, operation, telemetry  # noqa: E402

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]

_TABLE_PROPERTIES = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")


@pytest.fixture(autouse=True)
def no_network() -> Iterator[None]:
    """Fail any test that opens a socket to another machine or process."""
    pytest_socket.disable_socket(allow_unix_socket=True)
    yield
    pytest_socket.enable_socket()


@pytest.fixture(autouse=True)
def fresh_key_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test profit from keys that another one has looked up."""
    monkeypatch.setattr(auth, "_known", auth._Cache())
    monkeypatch.setattr(auth, "_unknown", auth._Cache())


@pytest.fixture(autouse=True)
def wire() -> Iterator[Wire]:
    """Give the way to the store; all that the layer sends there must be valid by the SDK's own description."""
    wire = Wire(dynamodb.client)
    wire.attach()
    yield wire
    wire.detach()
    assert wire.invalid == []


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
    monkeypatch.setattr(telemetry.logger.registered_handler, "stream", _Stdout())
    return Output(capsys)


class Context:
    """What the handlers use of Lambda's context object."""

    aws_request_id = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"
    remaining_ms = 10_000

    def get_remaining_time_in_millis(self) -> int:
        """Return the time that the template's functions have."""
        return self.remaining_ms


@pytest.fixture
def context() -> Context:
    """Give Lambda's context object."""
    return Context()


@cache
def _client() -> "DynamoDBClient":
    # One for all tests: to make it takes longer than most of them.
    client: DynamoDBClient = boto3.client("dynamodb")
    return client


@pytest.fixture
def tables() -> Iterator["DynamoDBClient"]:
    """Make the tables of template.yaml, empty; give a client for them."""
    with mock_aws():
        client = _client()
        for table in TEMPLATE.tables.values():
            properties = {name: table.properties[name] for name in _TABLE_PROPERTIES if name in table.properties}
            client.create_table(TableName=table.name, **properties)
        yield client


@pytest.fixture
def api_key(tables: "DynamoDBClient") -> str:
    """Put a valid API key into the key table."""
    key = api_keys.generate("test")
    tables.put_item(
        TableName=TEMPLATE.tables["ApiKeysTable"].name,
        Item={"hash": {"S": api_keys.digest(key)}, "label": {"S": "unit tests"}, "created": {"N": "1764892800"}},
    )
    return key


@cache
def _handler(folder: str) -> Handler:
    # Each function's module is named `app`: loaded under a name of its own.
    spec = importlib.util.spec_from_file_location(f"{folder}_app", ROOT / "functions" / folder / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Handler = module.handler
    return handler


@pytest.fixture
def load_handler() -> Callable[[str], Handler]:
    """Give the handler of a function by the name of its folder, such as `list_pets`."""
    return _handler


@dataclass(frozen=True)
class Answer:
    """The answer of a handler, its body read as JSON."""

    status: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Call:
    """A request, by what differs from the example event of its operation."""

    folder: str
    query: Mapping[str, list[str]] | None = None
    body: str | None = None
    headers: Mapping[str, list[str]] = field(default_factory=dict)
    pet_id: str = "1"

    def event(self) -> dict[str, Any]:
        """Make the proxy event."""
        event = copy.deepcopy(_example(self.folder))
        event["multiValueHeaders"] |= self.headers
        event["multiValueQueryStringParameters"] = self.query
        event["body"] = self.body
        if event["pathParameters"]:
            event["pathParameters"] = {"petId": self.pet_id}
        return event


@cache
def _example(folder: str) -> dict[str, Any]:
    name = {"list_pets": "list-200", "create_pet": "create-201", "get_pet": "get-200"}[folder]
    event: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text())
    return event


class Ask(Protocol):
    """Sends a request with a valid key, unless `headers` say otherwise."""

    def __call__(self, folder: str, **differences: Any) -> Answer: ...


@pytest.fixture
def ask(api_key: str, load_handler: Callable[[str], Handler], context: Context) -> Ask:
    """Give what sends requests to the handlers."""

    def ask(folder: str, **differences: Any) -> Answer:
        differences["headers"] = {"Authorization": [f"Bearer {api_key}"], **differences.get("headers", {})}
        answer = load_handler(folder)(Call(folder, **differences).event(), context)
        return Answer(answer["statusCode"], answer["headers"], json.loads(answer["body"]))

    return ask
