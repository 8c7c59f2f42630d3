"""The template, the handlers, and the mapping between HTTP and proxy events."""

import asyncio
import json
import shutil
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from lambda_local import LocalError, template
from lambda_local.gateway import Gateway, load_handlers, proxy_event
from lambda_local.template import Route
from starlette.requests import Request
from starlette.routing import request_response

from tests.support.in_process import own_layer
from tools import ROOT
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
    # Its age is compared in seconds.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
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


def get(
    gateway: Gateway, path: str = "/v1/pets", body: bytes = b"", **headers: str
) -> httpx.Response:
    transport = httpx.ASGITransport(request_response(gateway.handle), client=("192.0.2.1", 80))
    client = httpx.AsyncClient(
        transport=transport, base_url="http://localhost:3000", headers=headers
    )
    return asyncio.run(client.request("GET", path, content=body))


def test_functions_get_events(project: Path) -> None:
    gateway = load(
        project,
        ECHO,
        "Path: /v1/pets, Method: GET",
        "Path: '/v1/{kind}/{id}', Method: GET",
    )
    sent = {"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Proto": "https"}

    response = get(gateway, "/v1/a%2Fb%2520/1?q=1&q=2", b"", **sent)

    stage, event, milliseconds_left = response.json()
    assert stage == "local"
    assert event["pathParameters"] == {"kind": "a/b%20", "id": "1"}
    assert event["queryStringParameters"] == {"q": "2"}
    assert event["multiValueQueryStringParameters"] == {"q": ["1", "2"]}
    assert event["headers"]["X-Forwarded-For"] == "192.0.2.1"
    assert "x-forwarded-for" not in event["headers"]
    assert event["requestContext"]["identity"]["sourceIp"] == "192.0.2.1"
    assert event["requestContext"]["requestId"] == response.headers["x-amzn-RequestId"]
    assert 9000 < milliseconds_left <= 10_000


def test_fixed_segment_goes_before_a_parameter(project: Path) -> None:
    path = "Path: /v1/pets, Method: GET"
    gateway = load(project, ECHO, path, "Path: '/v1/{kind}/{id}', Method: GET")

    assert gateway.template.find("GET", "/v1/pets/1")[0].function == "GetPetFunction"


def test_request_beyond_api_gateways_quota_is_refused(project: Path) -> None:
    gateway = load(project, ECHO)

    assert get(gateway, "/v1/pets?" + "x" * 10_000).status_code == 200
    assert get(gateway, "/v1/pets?" + "x" * 10_240).status_code == 431
    assert get(gateway, A="x" * 10_240).status_code == 431
    assert get(gateway, body=bytes(10 * 1024 * 1024 + 1)).status_code == 413


def cpu_seconds(count: int) -> float:
    """Return how long it takes to make an event with so many headers and parameters."""
    scope = {
        "type": "http",
        "raw_path": b"/",
        "client": ("192.0.2.1", 80),
        "server": ("127.0.0.1", 3000),
        "method": "GET",
        "path": "/",
        "http_version": "1.1",
        "headers": [(b"x%d" % number, b"") for number in range(count)],
        "query_string": b"&".join(b"x%d=" % number for number in range(count)),
    }
    begin = time.process_time()
    proxy_event(Request(scope), b"", Route("/", "GET", ""), {}, stage="", request_id="")
    return time.process_time() - begin


def test_many_headers_and_parameters_take_linear_time() -> None:
    # Ten times as many; a hundred times as long if each looks at all.
    assert cpu_seconds(20_000) < 60 * cpu_seconds(2_000)


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


def test_handler_that_cannot_be_loaded_leaves_the_old_one_working(
    project: Path,
) -> None:
    old, shared = load(project, ECHO), sys.modules["animal_store.settings"]

    with pytest.raises(LocalError, match=r"SyntaxError: .*list_pets/app.py, line 2\)"):
        load(project, "x = 1\ndef handler(\n")

    assert sys.modules["animal_store.settings"] is shared
    new = load(project, ECHO.replace("200", "201"))
    assert get(old).status_code == 200
    assert get(new).status_code == 201
    assert sys.modules["animal_store.settings"] is not shared


@pytest.mark.parametrize(
    ("code", "logged"),
    [
        ("raise ValueError('secret detail')", "ValueError: secret detail"),
        ("raise SystemExit", "SystemExit"),
        (
            r"return {'statusCode': 200, 'headers': {'A': '1\r\nB: x'}}",
            "ValueError: not a respon",
        ),
    ],
)
def test_function_that_fails(project: Path, code: str, logged: str) -> None:
    gateway = load(project, f"def handler(event, context):\n    {code}\n")
    log, terminal = list[str](), list[str]()

    with redirected(log.append, partial(show_exception, terminal.append, Path("functions.log"))):
        failure = get(gateway)

    assert failure.status_code == 502
    assert failure.json()["code"] == "internal_error"
    assert logged in json.loads(log[0])["exception"]
    assert logged in terminal[0]
    assert "; the whole traceback is in functions.log" in terminal[0]


def test_function_that_takes_too_long(project: Path) -> None:
    slow = "import time\ndef handler(event, context):\n    time.sleep(2)\n"
    gateway, log = load(project, slow, "Timeout: 10", "Timeout: 1"), list[str]()
    with redirected(log.append):
        response = get(gateway)

    assert response.json()["code"] == "timeout"
    assert response.elapsed.total_seconds() < 2
    assert "Task timed out after 1.00 seconds" in log[0]
