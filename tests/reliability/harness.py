"""A local store, and execution environments of the functions behind HTTP, each with a fault proxy of its own."""

import asyncio
import contextlib
import dataclasses
import json
import re
import socket
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
from animal_store import api_key
from botocore.awsrequest import AWSResponse

from tests.reliability.fault_proxy import HOST, FaultProxy
from tests.reliability.report import Row
from tools import ROOT
from tools.local import template as templates
from tools.local.docs import Docs
from tools.local.functions import load, share_environment
from tools.local.gateway import Gateway
from tools.local.output import OutputLines
from tools.local.server import GatewayServer
from tools.local.store import ENDPOINT_VARIABLE, DataFolder, LocalStore, client, create_tables, use_local_environment
from tools.local.template import Template

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Pet = dict[str, Any]

FUNCTION_OF = {"listPets": "ListPetsFunction", "createPet": "CreatePetFunction", "getPet": "GetPetFunction"}

SECRET_NAME = "zq7name"  # every animal's name begins with it: no log line may have it
_SECRET = re.compile(rf"animal_(?:live|test)_[0-9A-Za-z]|{SECRET_NAME}|Bearer", re.IGNORECASE)


def load_template() -> Template:
    """Read the template as `make run` does."""
    return templates.load(ROOT / "template.yaml", {"Stage": "local"})


@dataclass(frozen=True, slots=True)
class Store:
    """A running local store with the template's tables.

    Args:
        endpoint: Its URL.
        dynamodb: A client that goes there directly, past every proxy.
        template: The template.
    """

    endpoint: str
    dynamodb: "DynamoDBClient"
    template: Template

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.endpoint.rpartition(":")[2])

    @property
    def animals(self) -> str:
        """The table of animals."""
        return self.template.tables["AnimalsTable"].name

    @property
    def keys(self) -> str:
        """The table of keys."""
        return self.template.tables["ApiKeysTable"].name

    def add_key(self, label: str = "reliability", **times: int) -> str:
        """Store a new key; `times` are `expires` and `revoked` in seconds since 1970."""
        key = api_key.generate("test")
        item: dict[str, Any] = {"hash": {"S": api_key.digest(key)}, "label": {"S": label}, "created": {"N": "1"}}
        item |= {name: {"N": str(value)} for name, value in times.items()}
        self.dynamodb.put_item(TableName=self.keys, Item=item)
        return key

    def items(self) -> list[dict[str, Any]]:
        """Read the whole table of animals."""
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=self.animals, ConsistentRead=True)
        return [item for page in pages for item in page["Items"]]

    def pets(self) -> list[Pet]:
        """Read all animals, as the service should answer them, by id."""
        return sorted((_pet(item) for item in self.items() if item["pk"]["S"] == "pet"), key=lambda pet: int(pet["id"]))

    def counter(self) -> int:
        """Read the last id that was given."""
        return max([int(item["value"]["N"]) for item in self.items() if item["pk"]["S"] == "counter"], default=0)


def _pet(item: dict[str, Any]) -> Pet:
    pet: Pet = {"id": int(item["id"]["N"]), "name": item["name"]["S"], "categoryId": int(item["categoryId"]["N"])}
    return pet | ({"status": item["status"]["S"]} if "status" in item else {})


@contextmanager
def store() -> Iterator[Store]:
    """Start a store in a folder of its own; the SDK of this process goes there from now on."""
    with tempfile.TemporaryDirectory(prefix="reliability-") as path:
        folder = DataFolder(Path(path))
        with folder.locked() as lock:
            running = LocalStore(folder, lock)
            try:
                use_local_environment(running.endpoint)
                running.wait_until_ready()
                made = Store(running.endpoint, client(running.endpoint), load_template())
                create_tables(made.dynamodb, made.template.tables.values())
                share_environment(made.template.functions.values())
                yield made
            finally:
                running.stop()


def client_of(handler: Any) -> Any:
    """Find the SDK client of a loaded copy of the layer, through what its handler refers to."""
    return handler.__globals__["dynamodb"].client


class Leaks:
    """A sink of the functions' output that looks for what must never be in a log line or a metric."""

    def __init__(self, secret: re.Pattern[str] = _SECRET) -> None:
        self._secret = secret
        self._lock = threading.Lock()
        self.lines = 0
        self.found: list[str] = []

    def __call__(self, _function: str, line: str) -> None:
        with self._lock:
            self.lines += 1
            if self._secret.search(line):
                self.found.append(line[:500])

    def row(self, part: str) -> Row:
        """Make the row of the table that says so."""
        return Row(
            part,
            "log lines and metrics searched for keys, headers and animals' names",
            runs=self.lines,
            leaks=len(self.found),
            examples=self.found[:5],
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client got.

    Args:
        status: The HTTP status.
        headers: Names in lower case.
        body: The JSON value.
        seconds: How long it took.
    """

    status: int
    headers: Mapping[str, str]
    body: Any
    seconds: float

    def problem(self) -> str | None:
        """Say what is wrong with an answer, whatever it answers: status, headers, the form of an Error."""
        if self.headers.get("content-type") != "application/json" or self.headers.get("cache-control") != "no-store":
            return f"headers {dict(self.headers)}"
        if self.status < 400:
            return None if isinstance(self.body, (dict, list)) else f"body {self.body!r}"
        if not isinstance(self.body, dict) or self.body.keys() != {"code", "message", "status"}:
            return f"body {self.body!r}"
        if self.body["status"] != self.status:
            return f"status {self.status} with {self.body!r}"
        if self.status in {503, 504} and not self.headers.get("retry-after"):
            return f"{self.status} without Retry-After"
        return None


class Heartbeat:
    """Notices when this process itself stood still: an answer of that time tells nothing about the service."""

    _INTERVAL_S = 0.05
    _PAUSE_S = 0.8

    def __init__(self) -> None:
        self._last_pause = 0.0
        self.pauses = 0

    async def beat(self) -> None:
        """Run beside everything else."""
        before = time.monotonic()
        while True:
            await asyncio.sleep(self._INTERVAL_S)
            now = time.monotonic()
            if now - before > self._PAUSE_S:
                self._last_pause = now
                self.pauses += 1
            before = now

    def paused_since(self, begin: float) -> bool:
        """Tell whether there was a pause since a time of `time.monotonic()`."""
        return self._last_pause >= begin


@dataclass(slots=True)
class Environment:
    """One execution environment of a function: takes one request at a time over HTTP, calls the store by a proxy.

    Args:
        function: Logical id.
        proxy: Between its SDK and the store.
        output: Takes what the function writes.
        executor: Runs handlers.
        store: Where it keeps its animals.
    """

    function: str
    proxy: FaultProxy
    output: OutputLines
    executor: ThreadPoolExecutor
    store: Store
    port: int = 0
    _client: Any = None
    _stack: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)

    async def open(self) -> None:
        """Open its ports and load the function."""
        await self.proxy.open()
        self._stack.push_async_callback(self.proxy.close)
        server = GatewayServer(await self._load(), Docs(ROOT / "openapi.yaml", "/v1"), lambda *_: None)
        listener = socket.socket()
        listener.bind((HOST, 0))
        self.port = listener.getsockname()[1]
        await self._stack.enter_async_context(server.listen(listener))

    async def close(self) -> None:
        """Close its ports."""
        await self._stack.aclose()

    def refill(self) -> None:
        """Give the SDK its whole retry quota back, as a new environment has it, by the event that gives back a part."""
        filling = {"context": {"retry_quota_capacity": 500}, "parsed": {}}
        success = AWSResponse(self.proxy.url, 200, {}, None)  # type: ignore[arg-type]
        self._client.meta.events.emit("after-call.dynamodb.GetItem", http_response=success, **filling)

    async def _load(self) -> Gateway:
        definition = self.store.template.functions[self.function]
        pointed = dataclasses.replace(
            definition, environment={**definition.environment, ENDPOINT_VARIABLE: self.proxy.url}
        )
        function = await asyncio.get_running_loop().run_in_executor(None, load, pointed, self.output)
        self._client = client_of(function.handler)
        return Gateway(self.store.template, {self.function: function}, self.output, self.executor)

    async def send(  # noqa: PLR0917 - the parts of a request, in their order
        self,
        session: aiohttp.ClientSession,
        key: str,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request; `path` follows `/v1`."""
        begin = time.monotonic()
        async with session.request(
            method,
            f"http://{HOST}:{self.port}/v1{path}",
            data=None if body is None else json.dumps(body),
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json", **(headers or {})},
        ) as response:
            text = await response.text()
        lower = {name.lower(): value for name, value in response.headers.items()}
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        return Answer(response.status, lower, value, time.monotonic() - begin)


@dataclass(frozen=True, slots=True)
class World:
    """Everything that a part of the suite needs.

    Args:
        store: The local store.
        leaks: Looks at the functions' output.
        output: What the functions write to.
        executor: Runs handlers.
        session: Sends requests.
        heartbeat: Of this process.
    """

    store: Store
    leaks: Leaks
    output: OutputLines
    executor: ThreadPoolExecutor
    session: aiohttp.ClientSession
    heartbeat: Heartbeat

    @contextlib.asynccontextmanager
    async def environment(self, function: str) -> AsyncIterator[Environment]:
        """Open an environment of a function for as long as the context lasts."""
        made = Environment(function, FaultProxy(self.store.port), self.output, self.executor, self.store)
        await made.open()
        try:
            yield made
        finally:
            await made.close()


@contextlib.asynccontextmanager
async def world(threads: int) -> AsyncIterator[World]:
    """Start a store and what calls it; for one process, whose stdout it takes.

    Args:
        threads: How many handlers may run at once.
    """
    leaks = Leaks()
    output = OutputLines(leaks)
    output.install()
    # Closed without waiting: a handler that is still at a stalled call ends by itself.
    executor = ThreadPoolExecutor(threads, "handler")
    with store() as made:
        timeout = aiohttp.ClientTimeout(total=60)
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            heartbeat = Heartbeat()
            beating = asyncio.create_task(heartbeat.beat())
            try:
                yield World(made, leaks, output, executor, session, heartbeat)
            finally:
                beating.cancel()
        executor.shutdown(wait=False)
