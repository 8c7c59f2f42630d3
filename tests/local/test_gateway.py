"""The template, the handlers, and the mapping between HTTP and proxy events."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
import pytest
from botocore.session import Session
from starlette.routing import request_response
from starlette.testclient import TestClient

from tools.local import LocalError, template
from tools.local.gateway import Gateway, load_handlers
from tools.local.store import Database, keep_local

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
        mock.patch.dict(os.environ, AWS_PROFILE="own"),
        mock.patch.dict(sys.modules),
        closing(Database(tmp_path / "store")) as database,
    ):
        keep_local(database)
        yield tmp_path


def load(project: Path, code: str = ECHO) -> Gateway:
    """Load a gateway, with this code of its functions."""
    (project / "code/app.py").write_text(code)
    loaded = template.load(project / "template.yaml", {"Stage": "test"}, "own")
    return Gateway(loaded, load_handlers(loaded))


def get(gateway: Gateway, path: str = "/notes/1", **request: Any) -> httpx2.Response:
    application = request_response(gateway.handle)
    client = TestClient(application, "http://localhost:3000", client=("192.0.2.1", 80))
    return client.request("GET", path, **request)


def test_functions_get_events(project: Path) -> None:
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


def test_path_without_a_route_gets_the_templates_response(project: Path) -> None:
    response = get(load(project), "/")

    assert (response.status_code, response.text) == (404, "of the template")
    assert response.headers["Cache-Control"] == "no-store"


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
        (
            "CodeUri: code",
            "CodeUri: code\n      Environment: {}",
            "ReadNote: ['Environment'] of AWS::Serverless::Function",
        ),
        ("StageName:", "Cors: x\n      StageName:", "Api: ['Cors'] of AWS::Serverless"),
        ("  Function:", "  HttpApi: {}\n  Function:", "Globals: ['HttpApi']"),
        (
            "DynamoDB::Table",
            "Lambda::Function",
            "NotesTable: AWS::Lambda::Function is not served here",
        ),
    ],
)
def test_template_that_it_does_not_know(
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


def test_client_of_another_service_does_not_reach_aws(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project))
    (project / ".aws").mkdir()
    (project / ".aws/config").write_text("[")  # the SDK would refuse it

    load(project)
    sqs: Any = Session().create_client("sqs")

    assert sqs.meta.endpoint_url == "http://127.0.0.1:9"
    with pytest.raises(LocalError, match=r"sqs.ListQueues: only DynamoDB is served"):
        sqs.list_queues()
