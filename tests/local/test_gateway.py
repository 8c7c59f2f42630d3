"""The template, the handlers, and the mapping between HTTP and proxy events."""

import asyncio
import json
import re
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import request_response

from tests.support.in_process import own_layer
from tools import ROOT
from tools.local import LocalError, template
from tools.local.gateway import Gateway, load_handlers
from tools.local.output import redirected, show_exception

ECHO = """
import json
from animal_store import settings
def handler(event, context):
    left = context.get_remaining_time_in_millis()
    return {"statusCode": 200, "body": json.dumps([settings.STAGE, event, left])}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of what a gateway is made of, with simple handlers."""
    for name in ("functions", "layers/common/animal_store"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for handler in tmp_path.glob("functions/*/app.py"):
        handler.write_text(ECHO)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # its age is compared in seconds
    with own_layer():
        for module in [module for module in sys.modules if module.startswith("animal_store")]:
            del sys.modules[module]
        yield tmp_path


def load(project: Path, handler: str, before: str = "\0", after: str = "") -> Gateway:
    """Load a gateway with another handler of listPets, and another text in the template."""
    (project / "functions/list_pets/app.py").write_text(handler)
    (project / "template.yaml").write_text(
        (ROOT / "template.yaml").read_text().replace(before, after)
    )
    loaded = template.load(project / "template.yaml", {"Stage": "local"})
    return Gateway(loaded, load_handlers(loaded))


def get(gateway: Gateway, path: str = "/v1/pets", **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(request_response(gateway.handle), client=("192.0.2.1", 80))
    client = httpx.AsyncClient(
        transport=transport, base_url="http://localhost:3000", headers=headers
    )
    return asyncio.run(client.get(path))


def test_functions_get_events_and_share_one_copy_of_the_layer(project: Path) -> None:
    gateway = load(
        project, ECHO, "Path: /v1/pets, Method: GET", 'Path: "/v1/{kind}/{id}", Method: GET'
    )

    response = get(
        gateway,
        "/v1/a%2Fb%2520/1?q=1&q=2",
        **{"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Proto": "https"},
    )

    stage, event, left = response.json()
    assert (stage, event["pathParameters"]) == ("local", {"kind": "a/b%20", "id": "1"})
    assert (event["queryStringParameters"], event["multiValueQueryStringParameters"]) == (
        {"q": "2"},
        {"q": ["1", "2"]},
    )
    forwarded = {
        name: value
        for name, value in event["headers"].items()
        if name.lower().startswith("x-forwarded-")
    }
    assert forwarded == {
        "X-Forwarded-For": "192.0.2.1",
        "X-Forwarded-Port": "3000",
        "X-Forwarded-Proto": "http",
    }
    assert event["requestContext"]["identity"]["sourceIp"] == "192.0.2.1"
    assert event["requestContext"]["requestId"] == response.headers["x-amzn-RequestId"]
    assert 9000 < left <= 10_000
    assert (
        gateway.template.find("GET", "/v1/pets/1")[0].function == "GetPetFunction"
    )  # a fixed segment goes first
    handlers: list[Any] = [*gateway._handlers.values()]
    assert {id(handler.__globals__["settings"]) for handler in handlers} == {
        id(sys.modules["animal_store.settings"])
    }


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("STAGE: !Ref Stage", "STAGE: !ImportValue x", "Variables.STAGE"),
        (
            "Type: AWS::DynamoDB::Table",
            "Type: AWS::DynamoDB::Table\n    Condition: X",
            "AnimalsTable has a condition",
        ),
        ("Parameters:", "Parameters: [", "cannot be used: ParserError"),
        ("\nResources:", "\nResources:\n  HalfWritten:", "cannot be used: TypeError"),
    ],
)
def test_template_that_it_does_not_know(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    text = (ROOT / "template.yaml").read_text()
    assert before in text
    (tmp_path / "template.yaml").write_text(text.replace(before, after))
    with pytest.raises(LocalError, match=message):
        template.load(tmp_path / "template.yaml", {"Stage": "local"})


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1\ndef handler(\n", r"SyntaxError: .*list_pets/app.py, line 2\)"),
        ("raise SystemExit(3)\n", "SystemExit"),
    ],
)
def test_handler_that_cannot_be_loaded_leaves_the_old_one_working(
    project: Path, code: str, message: str
) -> None:
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
        ("return {'statusCode': 600}", "ValueError: not a response: "),
        (
            r"return {'statusCode': 200, 'headers': {'A': '1\r\nB: x'}}",
            "ValueError: not a response: ",
        ),
    ],
)
def test_function_that_fails(project: Path, code: str, logged: str) -> None:
    gateway = load(project, f"def handler(event, context):\n    {code}\n")
    log, terminal = list[str](), list[str]()

    with redirected(log.append, partial(show_exception, terminal.append, Path("functions.log"))):
        failure = get(gateway)

    assert (failure.status_code, failure.json()["code"]) == (502, "internal_error")
    assert (failure.headers["Cache-Control"], failure.headers["Content-Type"]) == (
        "no-store",
        "application/json",
    )
    assert logged in json.loads(log[0])["exception"]
    assert re.fullmatch(
        rf" +{logged}.* \(.*, line \d+\); the whole traceback is in functions.log", terminal[0]
    )


def test_function_that_takes_too_long(project: Path) -> None:
    slow = "import time\ndef handler(event, context):\n    time.sleep(2)\n"
    gateway, log = load(project, slow, "Timeout: 10", "Timeout: 1"), list[str]()
    with redirected(log.append):
        response = get(gateway)

    assert (response.json()["code"], 1 <= response.elapsed.total_seconds() < 2) == ("timeout", True)
    assert "Task timed out after 1.00 seconds" in log[0]
