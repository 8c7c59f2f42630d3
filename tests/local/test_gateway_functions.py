"""Loading handlers, each function with modules of its own, and answering for those that fail."""

import asyncio
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tools.local import functions, template
from tools.local.events import Answer, Request
from tools.local.functions import LoadError
from tools.local.gateway import Gateway
from tools.local.output import OutputLines

TEMPLATE = """
Resources:
  Layer: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: layer}}
  Unauthorized:
    Type: AWS::ApiGateway::GatewayResponse
    Properties:
      ResponseType: MISSING_AUTHENTICATION_TOKEN
      StatusCode: 404
      ResponseParameters: {gatewayresponse.header.X-Own: "'yes'"}
      ResponseTemplates:
        application/json: '{"m":$context.error.messageString,"t":"$context.error.responseType","x":"$context.unknown"}'
"""
FUNCTION = """
  {name}:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: {name}
      Handler: app.handler
      Timeout: 1
      Layers: [!Ref Layer]
      Environment: {{Variables: {{NAME: {name}, COMMON: same}}}}
      Events: {{Api: {{Type: Api, Properties: {{Path: /v1/{name}, Method: GET}}}}}}
"""


class Folder:
    """Makes templates with handlers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[tuple[str, str]] = []
        self.output = OutputLines(lambda function, line: self.lines.append((function, line)))

    def gateway(self, **handlers: str) -> Gateway:
        """Load functions, given as the text of their `app.py`."""
        (self.path / "layer").mkdir()
        (self.path / "layer" / "shared_by_layer.py").write_text("import os\nNAME = os.environ['NAME']\nseen = []\n")
        for name, text in handlers.items():
            (self.path / name).mkdir()
            (self.path / name / "app.py").write_text(text)
        path = self.path / "template.yaml"
        path.write_text(TEMPLATE + "".join(FUNCTION.format(name=name) for name in handlers))
        return Gateway.of(template.load(path, {}), self.output, ThreadPoolExecutor(4))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("COMMON", "")  # loading sets it; this puts it back
    return Folder(tmp_path)


def get(gateway: Gateway, path: str, **changes: Any) -> Answer:
    values: dict[str, Any] = {
        "method": "GET",
        "path": path,
        "query": "",
        "headers": [("Host", "localhost")],
        "body": b"",
        "protocol": "HTTP/1.1",
        "source_ip": "127.0.0.1",
        "port": 3000,
    }
    return asyncio.run(gateway.handle(Request(**values | changes)))


USES_LAYER = """
import os
import shared_by_layer
import_time_name = os.environ["NAME"]
def handler(event, context):
    shared_by_layer.seen.append(1)
    body = f"{import_time_name} {shared_by_layer.NAME} {len(shared_by_layer.seen)} {os.environ['COMMON']}"
    return {"statusCode": 200, "body": body}
"""


def test_each_function_has_its_own_modules_and_environment(folder: Folder) -> None:
    gateway = folder.gateway(One=USES_LAYER, Two=USES_LAYER)

    bodies = [get(gateway, path).body for path in ("/v1/One", "/v1/One", "/v1/Two")]

    assert bodies == [b"One One 1 same", b"One One 2 same", b"Two Two 1 same"]


def test_loading_leaves_no_trace(folder: Folder) -> None:
    path = list(sys.path)
    gateway = folder.gateway(One=USES_LAYER, Two=USES_LAYER)

    assert "NAME" not in os.environ
    assert "shared_by_layer" not in sys.modules
    assert sys.path == path
    assert get(gateway, "/v1/One").status == 200


def test_loading_again_takes_new_code(folder: Folder) -> None:
    gateway = folder.gateway(One="def handler(event, context):\n    return {'statusCode': 200}\n")
    changed = "def handler(event, context):\n    answer = {'statusCode': 201}\n    return answer\n"
    (folder.path / "One/app.py").write_text(changed)

    again = functions.load(gateway.template.functions["One"], folder.output)

    assert get(gateway, "/v1/One").status == 200
    assert again.invoke({}, time.monotonic() + 1)["statusCode"] == 201


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nothing_of_that_name\n", "ModuleNotFoundError"),
        ("def handler(\n", "SyntaxError"),
        ("other = 1\n", "AttributeError"),
        ("raise SystemExit(3)\n", "SystemExit"),
    ],
)
def test_handler_that_cannot_be_loaded(folder: Folder, code: str, message: str) -> None:
    with pytest.raises(LoadError, match=rf"One/app.py cannot be loaded: {message}"):
        folder.gateway(One=code)


def test_event_and_context(folder: Folder) -> None:
    gateway = folder.gateway(
        One="""
import json
def handler(event, context):
    return {"statusCode": 200, "body": json.dumps({
        "resource": event["resource"], "left": context.get_remaining_time_in_millis(), "id": context.aws_request_id,
        "name": context.function_name, "memory": context.memory_limit_in_mb, "arn": context.invoked_function_arn})}
"""
    )

    seen = json.loads(get(gateway, "/v1/One").body)

    assert 900 < seen.pop("left") <= 1000
    assert len(seen.pop("id")) == 36
    assert seen == {
        "resource": "/v1/One",
        "name": "One",
        "memory": 128,
        "arn": "arn:aws:lambda:us-east-1:123456789012:function:One",
    }


@pytest.mark.parametrize(
    ("code", "logged"),
    [
        ("raise ValueError('secret detail')", "ValueError: secret detail"),
        ("raise SystemExit", "SystemExit"),
        ("raise TimeoutError('of the function')", "TimeoutError: of the function"),
        ("return {'statusCode': 'x'}", "Malformed Lambda proxy response: statusCode is 'x'"),
        ("return {'statusCode': 200, 'body': b'x'}", "Malformed Lambda proxy response"),
    ],
)
def test_function_that_fails(folder: Folder, code: str, logged: str) -> None:
    gateway = folder.gateway(One=f"def handler(event, context):\n    {code}\n")

    answer = get(gateway, "/v1/One")

    assert answer.status == 502
    assert json.loads(answer.body) == {"message": "Internal server error"}
    assert any(logged in line for function, line in folder.lines if function == "One")


def test_function_that_takes_too_long(folder: Folder) -> None:
    gateway = folder.gateway(One="import time\ndef handler(event, context):\n    time.sleep(8)\n")
    begin = time.monotonic()

    answer = get(gateway, "/v1/One")

    assert answer.status == 504
    assert 1 <= time.monotonic() - begin < 7
    assert any("Task timed out after 1.00 seconds" in line for _, line in folder.lines)


def test_gateway_response_of_the_template(folder: Folder) -> None:
    gateway = folder.gateway(One="def handler(event, context):\n    pass\n")

    answer = get(gateway, "/v1/other")

    assert answer.status == 404
    assert json.loads(answer.body) == {
        "m": "Missing Authentication Token",
        "t": "MISSING_AUTHENTICATION_TOKEN",
        "x": "",
    }
    assert ("X-Own", "yes") in answer.headers
    assert ("Content-Type", "application/json") in answer.headers


@pytest.mark.parametrize(
    "changes",
    [
        {"path": "/v1/One/\udcff"},
        {"query": "a=\udcff"},
        {"headers": [("Host", "a b")]},
    ],
)
def test_request_that_no_event_could_carry(folder: Folder, changes: dict[str, Any]) -> None:
    gateway = folder.gateway(One="def handler(event, context):\n    return {'statusCode': 200}\n")

    assert get(gateway, **({"path": "/v1/One"} | changes)).status == 400


def test_output_goes_to_the_sinks_line_by_line(
    folder: Folder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))  # puts it back
    folder.output.install()
    gateway = folder.gateway(
        One="""
import sys
print("imported")
def handler(event, context):
    print("first", "line")
    sys.stdout.write("second\\nthi")
    sys.stdout.write("rd\\n")
    print("error", file=sys.stderr)
    return {"statusCode": 200}
"""
    )
    get(gateway, "/v1/One")
    print("of the terminal")

    assert [line for function, line in folder.lines if function == "One"] == [
        "imported",
        "first line",
        "second",
        "third",
        "error",
    ]
    assert capsys.readouterr().out == "of the terminal\n"
