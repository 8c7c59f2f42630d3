"""The memory of the handlers over many invocations: by request, by key, by unknown key, by error.

Everything runs as in AWS but for the socket: the SDK's own `before-send` event answers in the store's place.
"""

import gc
import json
import os
import sys
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from animal_store import api_key
from botocore.awsrequest import AWSResponse

from tests.reliability.harness import client_of, load_template
from tests.reliability.report import Row
from tools.local.events import Request, proxy_event
from tools.local.functions import load, share_environment
from tools.local.output import OutputLines
from tools.local.store import use_local_environment
from tools.local.template import Match, Route

PART = "memory"
_PAGE = os.sysconf("SC_PAGE_SIZE")
_WARM_UP = 3000  # more than the caches of keys hold
_GROWTH_LIMIT = 2 * 1024 * 1024  # over all the invocations that are measured; the allocator's own noise is below it


class CannedStore:
    """Answers every call of the store: each key that it is asked for is as the test says."""

    def __init__(self) -> None:
        self.known = True
        self.failing = False
        self.number = 0

    def answer(self, event_name: str, request: Any, **_: object) -> AWSResponse:
        """Take the socket's place."""
        operation = event_name.rpartition(".")[2]
        if self.failing:
            return _response(500, {"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError"})
        return _response(200, self._body(operation, json.loads(request.body)))

    def _body(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        pet = {"pk": {"S": "pet"}, "id": {"N": "7"}, "name": {"S": "Rex"}, "categoryId": {"N": "1"}}
        match operation:
            case "GetItem" if "hash" in parameters["Key"]:
                return {"Item": {**parameters["Key"], "label": {"S": "canned"}}} if self.known else {}
            case "GetItem":
                return {"Item": pet}
            case "Query":
                return {"Items": [{**pet, "id": {"N": str(number)}} for number in range(1, 21)]}
            case "UpdateItem":
                self.number += 1
                return {"Attributes": {"value": {"N": str(self.number)}}}
        return {}


class _Raw:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: object) -> Iterator[bytes]:
        yield self._body


def _response(status: int, value: dict[str, Any]) -> AWSResponse:
    body = json.dumps(value).encode()
    headers: Any = {"x-amz-crc32": str(zlib.crc32(body))}
    return AWSResponse("http://canned", status, headers, _Raw(body))


_ROUTES = {
    "list": ("ListPetsFunction", Route("GET", "/v1/pets", "ListPetsFunction"), {}),
    "create": ("CreatePetFunction", Route("POST", "/v1/pets", "CreatePetFunction"), {}),
    "get": ("GetPetFunction", Route("GET", "/v1/pets/{petId}", "GetPetFunction"), {"petId": "7"}),
}


def _event(operation: str, key: str, **members: Any) -> dict[str, Any]:
    from datetime import UTC, datetime

    _, route, parameters = _ROUTES[operation]
    headers = [("Host", "127.0.0.1"), ("Authorization", f"Bearer {key}"), *members.pop("headers", ())]
    path = "/v1/pets/7" if operation == "get" else "/v1/pets"
    request = Request(
        route.method, path, members.pop("query", ""), headers, members.pop("body", b""), "HTTP/1.1", "127.0.0.1", 80
    )
    return proxy_event(
        request, Match(route, parameters), stage="local", request_id=str(uuid.uuid4()), now=datetime.now(UTC)
    )


def resident() -> int:
    """Return how much memory this process occupies, in bytes (Linux); its greatest so far elsewhere."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def _silent() -> Iterator[None]:
    """Send what the functions print nowhere."""
    before = sys.stdout
    with Path(os.devnull).open("w") as nowhere:
        sys.stdout = nowhere
        try:
            yield
        finally:
            sys.stdout = before


class Handlers:
    """The three functions, with the canned store in their SDK."""

    def __init__(self) -> None:
        use_local_environment("http://127.0.0.1:9")
        template = load_template()
        share_environment(template.functions.values())
        self.store = CannedStore()
        self.functions = {}
        for operation, (name, _, _) in _ROUTES.items():
            loaded = load(template.functions[name], OutputLines(lambda *_: None))
            self.functions[operation] = loaded
            client = client_of(loaded.handler)
            client.meta.events.register("before-send.dynamodb", self.store.answer)

    def invoke(self, operation: str, event: dict[str, Any]) -> int:
        """Invoke one and return its status."""
        status: int = self.functions[operation].invoke(event, time.monotonic() + 10)["statusCode"]
        return status


def _measure(row: Row, count: int, invoke: Callable[[int], bool], warm_up: int) -> None:
    """Invoke until caches are full, then so many times more, and hold the growth against the limit."""
    for number in range(warm_up):
        row.check(invoke(number), f"invocation {number}: another status")
    gc.collect()
    before = resident()
    for number in range(warm_up, warm_up + count):
        row.check(invoke(number), f"invocation {number}: another status")
    gc.collect()
    growth = resident() - before
    row.runs = count
    row.remark = f"{growth / 1024:+,.0f} KiB"
    row.check(growth < _GROWTH_LIMIT, f"grew by {growth:,} bytes over {count:,} invocations")


def run(*, quick: bool) -> list[Row]:
    """Run this part; quick: a fifth of the invocations."""
    scale = 1000 if quick else 20_000
    with _silent():
        handlers = Handlers()
        key = api_key.generate("test")
        operations = list(_ROUTES)
        body = json.dumps({"name": "Rex", "categoryId": 1}).encode()

        def ordinary(number: int) -> bool:
            operation = operations[number % 3]
            event = _event(operation, key, body=body if operation == "create" else b"")
            return handlers.invoke(operation, event) in {200, 201}

        def with_idempotency_key(_: int) -> bool:
            event = _event("create", key, body=body, headers=[("Idempotency-Key", str(uuid.uuid4()))])
            return handlers.invoke("create", event) == 201

        def new_key(_: int) -> bool:
            return handlers.invoke("list", _event("list", api_key.generate("test"))) == 200

        def unknown_key(_: int) -> bool:
            handlers.store.known = False
            status = handlers.invoke("list", _event("list", api_key.generate("test")))
            handlers.store.known = True
            return status == 401

        def invalid(number: int) -> bool:
            event = _event("create", key, body=f'{{"name": {number}, "x{number}": 1}}'.encode())
            return handlers.invoke("create", event) == 400

        def failing(_: int) -> bool:
            handlers.store.failing = True
            status = handlers.invoke("list", _event("list", api_key.generate("test")))
            handlers.store.failing = False
            return status == 503

        rows = []
        for title, invoke, share in (
            ("ordinary requests", ordinary, 2.0),
            ("requests with ever new Idempotency-Keys", with_idempotency_key, 1.0),
            ("requests with ever new valid keys", new_key, 1.0),
            ("requests with ever new unknown keys", unknown_key, 1.0),
            ("invalid requests", invalid, 0.5),
            ("requests while the store fails", failing, 0.1),
        ):
            row = Row(PART, f"growth over {title}")
            _measure(row, int(scale * share), invoke, int(_WARM_UP * min(1.0, share * (0.5 if quick else 1))))
            rows.append(row)
    return rows
