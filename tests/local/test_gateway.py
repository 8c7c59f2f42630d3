"""Handlers loaded from a template, and API Gateway's responses for those that fail."""

import asyncio
import json
import sys
import time
from pathlib import Path

import httpx
import pytest
from starlette.routing import request_response

from tools.local import LocalError, functions, template
from tools.local.gateway import Gateway
from tools.local.output import errors, redirected

TEMPLATE = """
Resources:
  Layer: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: layer}}
  Api:
    Type: AWS::Serverless::Api
    Properties:
      StageName: local
      GatewayResponses:
        MISSING_AUTHENTICATION_TOKEN:
          StatusCode: 404
          ResponseParameters: {Headers: {X-Own: "'yes'"}}
          ResponseTemplates: {application/json: '{"m":$context.error.messageString,"x":"$context.unknown"}'}
"""
FUNCTION = """
  {name}:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: {name}
      Handler: app.handler
      Timeout: 1
      Layers: [!Ref Layer]
      Environment: {{Variables: {{SETTING: {setting}}}}}
      Events: {{Api: {{Type: Api, Properties: {{Path: /v1/{name}, Method: GET}}}}}}
"""
SHARED = "import os\nSETTING = os.environ['SETTING']\nseen = []\n"
USES_SHARED = """
import json
import shared_by_layer
def handler(event, context):
    shared_by_layer.seen.append(event["resource"])
    left, arn = context.get_remaining_time_in_millis(), context.invoked_function_arn
    body = {"setting": shared_by_layer.SETTING, "seen": shared_by_layer.seen, "left": left, "arn": arn}
    return {"statusCode": 200, "body": json.dumps(body)}
"""


class Project:
    """A folder with a template, functions and a layer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def gateway(self, *, settings: tuple[str, ...] = ("x", "x"), **handlers: str) -> Gateway:
        """Load functions, given as the text of their `app.py`."""
        for name, text in {"layer": "", **handlers}.items():
            (self.folder / name).mkdir(exist_ok=True)
            (self.folder / name / "app.py").write_text(text)
        (self.folder / "layer/shared_by_layer.py").write_text(SHARED)
        text = "".join(
            FUNCTION.format(name=name, setting=setting) for name, setting in zip(handlers, settings, strict=False)
        )
        (self.folder / "template.yaml").write_text(TEMPLATE + text)
        loaded = template.load(self.folder / "template.yaml", {})
        return Gateway(loaded, functions.load(loaded))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("SETTING", "")  # loading sets it; this puts it back
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # its age is compared in seconds
    monkeypatch.delitem(sys.modules, "shared_by_layer", raising=False)
    return Project(tmp_path)


def get(gateway: Gateway, path: str) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(request_response(gateway.handle))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:3000") as client:
            return await client.get(path)

    return asyncio.run(send())


def test_functions_share_one_copy_of_the_layer(project: Project) -> None:
    gateway = project.gateway(One=USES_SHARED, Two=USES_SHARED)

    get(gateway, "/v1/One")
    body = get(gateway, "/v1/Two").json()

    assert 900 < body.pop("left") <= 1000
    assert body == {
        "setting": "x",
        "seen": ["/v1/One", "/v1/Two"],
        "arn": "arn:aws:lambda:us-east-1:123456789012:function:Two",
    }


def test_functions_cannot_differ_in_a_variable(project: Project) -> None:
    with pytest.raises(LocalError, match="Two needs its own SETTING"):
        project.gateway(settings=("x", "y"), One=USES_SHARED, Two=USES_SHARED)


def test_loading_again_takes_new_code_and_leaves_the_old_working(project: Project) -> None:
    old = project.gateway(One=USES_SHARED)
    new = project.gateway(One=USES_SHARED.replace("200", "201"))

    assert [get(gateway, "/v1/One").status_code for gateway in (old, new, old)] == [200, 201, 200]
    assert len(get(new, "/v1/One").json()["seen"]) == 2


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nothing_of_that_name\n", r"ModuleNotFoundError: .*One/app.py, line 1\)"),
        ("x = 1\ndef handler(\n", r"SyntaxError: .*One/app.py, line 2\)"),
        ("other = 1\n", "AttributeError"),
        ("raise SystemExit(3)\n", "SystemExit"),
    ],
)
def test_handler_that_cannot_be_loaded(project: Project, code: str, message: str) -> None:
    project.gateway(One=USES_SHARED)
    shared = sys.modules["shared_by_layer"]

    with pytest.raises(LocalError, match=rf"One/app.py cannot be loaded: {message}"):
        project.gateway(One=code)

    assert sys.modules["shared_by_layer"] is shared


@pytest.mark.parametrize(
    ("code", "logged"),
    [
        ("raise ValueError('secret detail')", "ValueError: secret detail"),
        ("raise SystemExit", "SystemExit"),
        ("raise TimeoutError('of the function')", "TimeoutError: of the function"),
        ("return {'statusCode': 'x'}", "MalformedResponseError"),
    ],
)
def test_function_that_fails(project: Project, code: str, logged: str) -> None:
    gateway = project.gateway(One=f"def handler(event, context):\n    {code}\n")
    log: list[str] = []
    terminal: list[str] = []

    with redirected(log.append, errors(terminal.append, Path("functions.log"))):
        response = get(gateway, "/v1/One")

    assert response.status_code == 502
    assert response.json() == {"message": "Internal server error"}
    assert logged in json.loads(log[0])["exception"]
    assert logged in terminal[0]
    assert terminal[0].endswith("the whole traceback is in functions.log")
    assert ", line " in terminal[0]


def test_function_that_takes_too_long(project: Project) -> None:
    gateway = project.gateway(One="import time\ndef handler(event, context):\n    time.sleep(3)\n")
    begin, log = time.monotonic(), list[str]()

    with redirected(log.append):
        response = get(gateway, "/v1/One")

    assert response.status_code == 504
    assert 1 <= time.monotonic() - begin < 3
    assert "Task timed out after 1.00 seconds" in log[0]


def test_gateway_response_of_the_template(project: Project) -> None:
    response = get(project.gateway(One=USES_SHARED), "/v1/other")

    assert response.status_code == 404
    assert response.json() == {"m": "Missing Authentication Token", "x": ""}
    assert (response.headers["X-Own"], response.headers["Content-Type"]) == ("yes", "application/json")
