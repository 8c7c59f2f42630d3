"""The template, the handlers, and the mapping between HTTP and proxy events."""

import asyncio
import json
import shutil
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.routing import request_response

from tests.in_process import own_layer
from tools import ROOT
from tools.local import LocalError, template
from tools.local.gateway import Gateway, load_handlers, proxy_event, response
from tools.local.output import redirected, show_exception
from tools.local.template import Route

ECHO = """
import json
from animal_store import settings
def handler(event, context):
    left = context.get_remaining_time_in_millis()
    return {"statusCode": 200, "body": json.dumps([settings.STAGE, event["pathParameters"], left])}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of what a gateway is made of, with simple handlers."""
    for name in ("functions", "layers/common/animal_store"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "template.yaml", tmp_path)
    for handler in tmp_path.glob("functions/*/app.py"):
        handler.write_text(ECHO)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # its age is compared in seconds
    with own_layer():
        for module in [module for module in sys.modules if module.startswith("animal_store")]:
            del sys.modules[module]
        yield tmp_path


def load(project: Path, handler: str = "", before: str = "", after: str = "") -> Gateway:
    """Load a gateway with another handler of listPets, or with another text in the template."""
    if handler:
        (project / "functions/list_pets/app.py").write_text(handler)
    text = (project / "template.yaml").read_text()
    assert before in text
    (project / "template.yaml").write_text(text.replace(before, after) if before else text)
    loaded = template.load(project / "template.yaml", {"Stage": "local"})
    return Gateway(loaded, load_handlers(loaded))


def get(gateway: Gateway, path: str = "/v1/pets") -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(request_response(gateway.handle))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:3000") as client:
            return await client.get(path)

    return asyncio.run(send())


def test_functions_share_one_copy_of_the_layer(project: Path) -> None:
    gateway = load(project, ECHO, "Path: /v1/pets, Method: GET", 'Path: "/v1/{kind}/{id}", Method: GET')

    stage, parameters, left = get(gateway, "/v1/a%2Fb%2520/1").json()

    assert (stage, gateway.template.stage, gateway.template.base_path) == ("local", "local", "/v1")
    assert parameters == {"kind": "a/b%20", "id": "1"}
    assert 9000 < left <= 10_000
    assert gateway.template.find("GET", "/v1/pets/1")[0].function == "GetPetFunction"  # a fixed segment goes first
    handlers: list[Any] = [*gateway._handlers.values()]
    assert [handler.__globals__["settings"] for handler in handlers] == [sys.modules["animal_store.settings"]] * 3


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("STAGE: !Ref Stage", "STAGE: !Ref Stag", "Variables.STAGE"),
        ("STAGE: !Ref Stage", "STAGE: !ImportValue x", "Variables.STAGE"),
        ("MemorySize: !Ref MemorySize", "MemorySize: !If [A, 1, 2]", "MemorySize"),
        ("CodeUri: functions/list_pets/", "CodeUri: functions/list_pets/\n      Layers: []", "ListPets.* of its own"),
        ("Type: AWS::DynamoDB::Table", "Type: AWS::DynamoDB::Table\n    Condition: X", "AnimalsTable has a condition"),
        ("Parameters:", "Parameters: [", "cannot be used: ParserError"),
        ("\nResources:", "\nResources:\n  HalfWritten:", "cannot be used: TypeError"),
    ],
)
def test_template_that_it_does_not_know(project: Path, before: str, after: str, message: str) -> None:
    with pytest.raises(LocalError, match=message):
        load(project, "", before, after)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nothing_of_that_name\n", r"ModuleNotFoundError: .*list_pets/app.py, line 1\)"),
        ("x = 1\ndef handler(\n", r"SyntaxError: .*list_pets/app.py, line 2\)"),
        ("other = 1\n", "KeyError"),
        ("raise SystemExit(3)\n", "SystemExit"),
    ],
)
def test_handler_that_cannot_be_loaded_leaves_the_old_one_working(project: Path, code: str, message: str) -> None:
    old, shared = load(project, ECHO), sys.modules["animal_store.settings"]

    with pytest.raises(LocalError, match=rf"list_pets/app.py cannot be loaded: {message}"):
        load(project, code)

    assert sys.modules["animal_store.settings"] is shared
    new = load(project, ECHO.replace("200", "201"))
    assert [get(gateway).status_code for gateway in (old, new, old)] == [200, 201, 200]
    assert sys.modules["animal_store.settings"] is not shared


@pytest.mark.parametrize(
    ("code", "logged"),
    [
        ("raise ValueError('secret detail')", "ValueError: secret detail"),
        ("raise SystemExit", "SystemExit"),
        ("raise TimeoutError('of the function')", "TimeoutError: of the function"),
        ("return {'statusCode': 'x'}", "ValueError: not a response: "),
    ],
)
def test_function_that_fails(project: Path, code: str, logged: str) -> None:
    gateway = load(project, f"def handler(event, context):\n    {code}\n")
    log: list[str] = []
    terminal: list[str] = []

    with redirected(log.append, partial(show_exception, terminal.append, Path("functions.log"))):
        failure = get(gateway)

    assert (failure.status_code, failure.json()["code"]) == (502, "internal_error")
    assert (failure.headers["Cache-Control"], failure.headers["Content-Type"]) == ("no-store", "application/json")
    assert logged in json.loads(log[0])["exception"]
    assert logged in terminal[0]
    assert ", line " in terminal[0]
    assert terminal[0].endswith("the whole traceback is in functions.log")


def test_function_that_takes_too_long(project: Path) -> None:
    slow = "import time\ndef handler(event, context):\n    time.sleep(2)\n"
    gateway, log = load(project, slow, "Timeout: 10", "Timeout: 1"), list[str]()
    begin = time.monotonic()

    with redirected(log.append):
        assert get(gateway).json()["code"] == "timeout"

    assert 1 <= time.monotonic() - begin < 2
    assert "Task timed out after 1.00 seconds" in log[0]


def test_documented_example_of_aws() -> None:
    record = json.loads((Path(__file__).parent / "aws_documented_event.json").read_text("utf-8"))
    sent, theirs = record["request"], record["event"]
    for name in ("headers", "multiValueHeaders"):  # ASGI has names in lower case
        theirs[name] = {key.lower(): value for key, value in theirs[name].items()}
    hostile = [["x-forwarded-proto", "https"], ["X-Forwarded-For", "6.6.6.6"]]
    scope = {"type": "http", "scheme": "http", "http_version": "1.1", "client": (sent["source_ip"], 1)}
    scope |= {"method": sent["method"], "path": sent["path"], "raw_path": sent["path"].encode()}
    scope["headers"] = [(name.lower().encode(), value.encode()) for name, value in sent["headers"] + hostile]
    request = Request(scope | {"query_string": sent["query"].encode()})
    route, own = Route("POST", sent["resource"], "F"), theirs["requestContext"]
    chosen = {"stage": own["stage"], "request_id": own["requestId"]}

    made = proxy_event(request, sent["body"].encode(), route, theirs["pathParameters"], **chosen)

    assert known(made, theirs) == theirs
    told = {name: value for name, value in made["headers"].items() if name.lower().startswith("x-forwarded")}
    assert list(told.values()) == [sent["source_ip"], "80", "http"]
    assert made["requestContext"]["domainName"] == theirs["headers"]["host"]
    assert abs(made["requestContext"]["requestTimeEpoch"] / 1000 - time.time()) < 60


def known(made: Any, theirs: Any) -> Any:
    """Leave out what their event does not have."""
    return {name: known(made.get(name), theirs[name]) for name in theirs} if isinstance(theirs, dict) else made


@pytest.mark.parametrize(
    "wrong",
    [
        {"statusCode": 600},
        {"body": {"an": "object"}},
        {"body": "\ud800"},
        {"headers": {"A": "1\r\nSet-Cookie: x"}},
        {"unknown": 1},
    ],
)
def test_malformed_results(wrong: dict[str, Any]) -> None:
    assert response({"statusCode": 200, "headers": {"A": 1}}).headers["A"] == "1"
    with pytest.raises(ValueError, match=r"not a response|surrogates"):
        response({"statusCode": 200, **wrong})
