"""The template, the handlers, and the mapping between HTTP and proxy events."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
import pytest
from starlette.routing import request_response
from starlette.testclient import TestClient

from tools.key_table import EXAMPLE_KEY
from tools.local import LocalError, template
from tools.local.gateway import Gateway, load_handlers
from tools.local.service import load_template
from tools.local.store import Database

TEMPLATE = """\
Parameters:
  Stage: {Type: String}
Globals:
  Function:
    Handler: app.handler
    Timeout: 3
    Runtime: python3.13
    Environment: {Variables: {STAGE: !Ref Stage, TABLE: !Ref NotesTable}}
Resources:
  Api:
    Type: AWS::Serverless::Api
    Properties:
      StageName: !Ref Stage
      BinaryMediaTypes: [image~1png]
      GatewayResponses:
        DEFAULT_5XX: &own
          ResponseParameters: {Headers: {Cache-Control: "'no-store'"}}
          ResponseTemplates: {text/plain: of the template}
        MISSING_AUTHENTICATION_TOKEN: {<<: *own, StatusCode: 404}
        INTEGRATION_TIMEOUT: {<<: *own, StatusCode: 504}
  SharedLayer:
    Type: AWS::Serverless::LayerVersion
    Properties: {ContentUri: layer}
  ReadNote:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: code
      Timeout: 0.5
      Events:
        Get: {Type: Api, Properties: {Path: "/{kind}/{id}", Method: get, RestApiId: !Ref Api}}
        Heartbeat: {Type: Schedule, Properties: {Schedule: rate(5 minutes), Input: !Sub "${Stage}"}}
  NotesTable:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      DeletionProtectionEnabled: true
"""
ECHO = """\
import json, os
import local_test_layer
def handler(event, context):
    variables = [os.environ["TABLE"], os.environ["STAGE"]]
    return {"statusCode": 200, "headers": {}, "body": json.dumps([event, variables])}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A template, the code of its functions, which echo their events, and their layer."""
    (tmp_path / "code").mkdir()
    (tmp_path / "layer").mkdir()
    (tmp_path / "layer/local_test_layer.py").touch()
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with (
        mock.patch.dict(os.environ),
        mock.patch.dict(sys.modules),
    ):
        yield tmp_path


def load(project: Path, code: str = ECHO) -> Gateway:
    """Load a gateway whose functions have this code."""
    (project / "code/app.py").write_text(code)
    loaded = template.load(project / "template.yaml", {"Stage": "test"}, "own")
    return Gateway(loaded, load_handlers(loaded))


def get(gateway: Gateway, path: str = "/notes/1", **request: Any) -> httpx2.Response:
    application = request_response(gateway.handle)
    client = TestClient(application, "http://localhost:3000", client=("192.0.2.1", 80))
    return client.request("GET", path, **request)


def test_function_gets_an_event(project: Path) -> None:
    headers = [("X-Forwarded-For", "6.6.6.6"), ("A", "1"), ("A", "2")]

    path = "/a%2Fb%2520/1?q=1&q=2"
    response = get(load(project), path, content=b"\xff", headers=headers)

    event, variables = response.json()
    assert variables == ["own-NotesTable", "test"]
    assert event.pop("headers")["a"] == "2"
    values = event.pop("multiValueHeaders")
    assert values["a"] == ["1", "2"]
    assert values["X-Forwarded-For"] == ["192.0.2.1"]
    assert "x-forwarded-for" not in values
    assert event == {
        "resource": "/{kind}/{id}",
        "path": "/a%2Fb%2520/1",
        "httpMethod": "GET",
        "queryStringParameters": {"q": "2"},
        "multiValueQueryStringParameters": {"q": ["1", "2"]},
        "pathParameters": {"kind": "a%2Fb%2520", "id": "1"},
        "stageVariables": None,
        "requestContext": {
            "domainName": "localhost",
            "identity": {"sourceIp": "192.0.2.1"},
            "path": "/a%2Fb%2520/1",
            "requestId": response.headers["x-amzn-RequestId"],
            "stage": "test",
        },
        "body": "/w==",
        "isBase64Encoded": True,
    }
    assert response.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("media_type", "body", "is_base64"),
    [
        ("Image/PNG; q=1", "eA==", True),
        ("image/gif", "x", False),
    ],
)
def test_body_of_a_binary_media_type_arrives_in_base64(
    project: Path, media_type: str, body: str, is_base64: bool
) -> None:
    headers = {"Content-Type": media_type}
    event, _ = get(load(project), content=b"x", headers=headers).json()

    assert (event["body"], event["isBase64Encoded"]) == (body, is_base64)


@pytest.mark.parametrize("path", ["/", "//notes/1", "/notes/1//"])
def test_path_without_a_route_gets_the_templates_response(
    project: Path, path: str
) -> None:
    response = get(load(project), f"http://localhost:3000{path}")

    assert (response.status_code, response.text) == (404, "of the template")
    assert response.headers["Cache-Control"] == "no-store"


def test_many_parameters_take_little_time(project: Path) -> None:
    gateway, many = load(project), "&".join(f"n{number}" for number in range(9000))
    get(gateway)  # the first request starts a thread

    started = time.process_time()
    event, _ = get(gateway, f"/notes/1?{many}").json()

    assert len(event["multiValueQueryStringParameters"]) == 9000
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        ("Parameters:", "Parameters: [", "ParserError"),
        ("TABLE: !Ref NotesTable", "TABLE: !Sub x", "Globals: only !Ref is served"),
        ("STAGE: !Ref Stage", "STAGE: !Ref Stag", "KeyError: 'Stag'"),
        ("Api\n", "Api\n    Condition: X\n", "Api: ['Condition'] of AWS::Serverless::"),
        (
            "Type: Api, ",
            "Type: HttpApi, ",
            "ReadNote: ['Method', 'Path', 'RestApiId'] of Http",
        ),
        (
            "Method: get",
            "Method: get, Auth: {}",
            "ReadNote: ['Auth'] of Api is not served",
        ),
        ("  Function:", "  HttpApi: {}\n  Function:", "Globals: ['HttpApi']"),
        (
            "DynamoDB::Table",
            "Lambda::Function",
            "NotesTable: AWS::Lambda::Function is not served here",
        ),
    ],
)
def test_unsupported_template_is_refused_by_name(
    tmp_path: Path, before: str, after: str, refused: str
) -> None:
    (tmp_path / "template.yaml").write_text(TEMPLATE.replace(before, after))

    with pytest.raises(LocalError) as error:
        template.load(tmp_path / "template.yaml", {"Stage": "test"}, "own")

    assert refused in str(error.value)


def test_handler_that_cannot_be_loaded_is_named(project: Path) -> None:
    with pytest.raises(LocalError, match=r"code/app.py cannot be loaded: SyntaxError"):
        load(project, "x = 1\ndef handler(\n")


@pytest.mark.parametrize(
    ("code", "status", "logged"),
    [
        ("raise ValueError('secret detail')", 502, "ValueError: secret detail"),
        ("raise SystemExit", 502, "SystemExit"),
        ("raise TimeoutError", 502, "TimeoutError"),
        ("import time; time.sleep(0.7)", 504, "Task timed out after 0.50 seconds"),
    ],
)
def test_function_that_fails(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    code: str,
    status: int,
    logged: str,
) -> None:
    failure = get(load(project, f"def handler(event, context):\n    {code}\n"))

    assert (failure.status_code, failure.text) == (status, "of the template")
    line = json.loads(capsys.readouterr().err)
    assert line["request_id"] == failure.headers["x-amzn-RequestId"]
    assert logged in line.get("exception", line["message"])


USES_SQS = """\
from botocore.session import Session
credentials = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
sqs = Session().create_client("sqs", "us-east-1", **credentials)
def handler(event, context):
    sqs.list_queues()
"""


def test_handler_that_calls_another_service_fails(project: Path) -> None:
    with closing(Database(project / "store")) as database, database.answering():
        gateway = load(project, USES_SQS)

    with pytest.raises(LocalError, match=r"sqs\.ListQueues: only DynamoDB"):
        gateway.invoke("ReadNote", {}, seconds=60)


@pytest.mark.parametrize(
    ("authorization", "reason"),
    [
        (["Bearer x", "Bearer x"], "2 Authorization headers"),
        ([EXAMPLE_KEY], 'the header is not "Authorization: Bearer KEY"'),
        (["Bearer animal_test_..."], "the key is misspelled or cut off"),
        ([f"bearer  {EXAMPLE_KEY} "], "the key is unknown to this store, expired or"),
    ],
)
def test_log_says_why_a_request_is_unauthorized(
    project: Path,
    caplog: pytest.LogCaptureFixture,
    authorization: list[str],
    reason: str,
) -> None:
    unauthorized = "return {'statusCode': 401, 'headers': {}, 'body': ''}"
    gateway = load(project, f"def handler(event, context):\n    {unauthorized}\n")
    caplog.set_level("INFO", "tools.local.gateway")

    get(gateway, headers=[("Authorization", value) for value in authorization])

    (message,) = caplog.messages
    assert message.startswith(f"401: {reason}")


FIREWALL = load_template(Waf="true").firewall


@pytest.mark.parametrize(
    "headers",
    [[], [("Authorization", f"Bearer {EXAMPLE_KEY}")] * 2],
)
def test_firewall_answers_a_request_without_a_key(
    project: Path, headers: list[tuple[str, str]]
) -> None:
    gateway = load(project)
    gateway.template.firewall = FIREWALL

    response = get(gateway, "/unknown", headers=headers)

    assert response.status_code == 401
    assert response.json()["code"] == "unauthorized"
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="animal-store"'
