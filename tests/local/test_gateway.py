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
  Stage: {Type: String, Default: production}
Globals:
  Function:
    Handler: notes.app.handler
    CodeUri: code
    Timeout: 10
    Runtime: python3.13
    MemorySize: 256
    Environment:
      Variables: {STAGE: !Ref Stage, BUNDLE: /opt/bundle.pem, STACK: !Ref AWS::StackName,
                  PLACE: !Ref AWS::Region, ACCOUNT: !Ref AWS::AccountId}
Resources:
  Api:
    Type: AWS::Serverless::Api
    Properties:
      StageName: !Ref Stage
      GatewayResponses:
        MISSING_AUTHENTICATION_TOKEN:
          StatusCode: 404
          ResponseParameters: {Headers: {Cache-Control: "'no-store'"}}
          ResponseTemplates: {text/plain: no such page}
  SharedLayer:
    Type: AWS::Serverless::LayerVersion
    Properties: {ContentUri: layer}
  ListNotes:
    Type: AWS::Serverless::Function
    Properties:
      Layers: [!Ref SharedLayer]
      Environment: {Variables: {TABLE: !Ref NotesTable}}
      Events: {Get: {Type: Api, Properties: {Path: /notes, Method: get, RestApiId: !Ref Api}}}
  ReadNote:
    Type: AWS::Serverless::Function
    Properties:
      Events:
        Get: {Type: Api, Properties: {Path: "/{kind}/{id}", Method: get, RestApiId: !Ref Api}}
  NewestNote:
    Type: AWS::Serverless::Function
    Properties:
      Events:
        Get: {Type: Api, Properties: {Path: /notes/newest, Method: get, RestApiId: !Ref Api}}
  NotesTable:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      BillingMode: PAY_PER_REQUEST
      DeletionProtectionEnabled: true
"""
ECHO = """\
import json
import os
import local_test_layer
NAMES = {"ACCOUNT", "AWS_REGION", "BUNDLE", "PLACE", "STACK", "STAGE", "TABLE"}
def handler(event, context):
    seconds = context.get_remaining_time_in_millis() // 1000
    own = vars(context) | {"get_remaining_time_in_millis": seconds}
    environment = {name: os.environ[name] for name in NAMES & os.environ.keys()}
    return {"statusCode": 200, "body": json.dumps([event, own, environment])}
"""
SHARED = "local_test_layer"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A template, the code of its functions, which echo their events, and their layer."""
    (tmp_path / "code/notes").mkdir(parents=True)
    (tmp_path / "layer").mkdir()
    (tmp_path / "layer" / f"{SHARED}.py").touch()
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    # The age of bytecode is compared in seconds.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
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
    (project / "code/notes/app.py").write_text(code)
    loaded = template.load(project / "template.yaml", {"Stage": "test"}, "own")
    return Gateway(loaded, load_handlers(loaded))


def get(
    gateway: Gateway,
    path: str = "/notes",
    body: bytes = b"",
    *headers: tuple[str, str],
) -> httpx2.Response:
    application = request_response(gateway.handle)
    client = TestClient(application, "http://localhost:3000", client=("192.0.2.1", 80))
    return client.request("GET", path, content=body, headers=headers)


def test_functions_get_events(project: Path) -> None:
    sent = [("X-Forwarded-For", "6.6.6.6"), ("X-Forwarded-Proto", "https")]
    sent += [("A", "1"), ("A", "2")]

    response = get(load(project), "/a%2Fb%2520/1?q=1&q=2", b"\xff", *sent)

    event, context, environment = response.json()
    headers, values = event.pop("headers"), event.pop("multiValueHeaders")
    assert headers == {name: each[-1] for name, each in values.items()}
    assert values["a"] == ["1", "2"]
    assert not {"x-forwarded-for", "x-forwarded-proto"} & headers.keys()
    assert headers["X-Forwarded-For"] == "192.0.2.1"
    assert headers["X-Forwarded-Port"] == "3000"
    assert headers["X-Forwarded-Proto"] == "http"
    assert event == {
        "resource": "/{kind}/{id}",
        "path": "/a%2Fb%2520/1",
        "httpMethod": "GET",
        "queryStringParameters": {"q": "2"},
        "multiValueQueryStringParameters": {"q": ["1", "2"]},
        "pathParameters": {"kind": "a/b%20", "id": "1"},
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
    assert context.pop("aws_request_id")
    assert context == {
        "function_name": "own-ReadNote",
        "function_version": "$LATEST",
        "invoked_function_arn": "arn:aws:lambda:us-east-1:123456789012:function:own-ReadNote",
        "memory_limit_in_mb": 256,
        "log_group_name": "/aws/lambda/own-ReadNote",
        "log_stream_name": "local",
        "identity": None,
        "client_context": None,
        "get_remaining_time_in_millis": 9,
    }
    assert environment == {
        "ACCOUNT": "123456789012",
        "AWS_REGION": "us-east-1",
        "PLACE": "us-east-1",
        "STACK": "own",
        "STAGE": "test",
        "TABLE": "own-NotesTable",
    }


def test_fixed_segment_goes_before_a_parameter(project: Path) -> None:
    loaded = template.load(project / "template.yaml", {})

    found = [
        loaded.find("GET", f"/notes{end}")[0].function
        for end in ("", "/newest", "/oldest")
    ]
    assert found == ["ListNotes", "NewestNote", "ReadNote"]
    assert loaded.api.stage_name == "production"


def test_path_without_a_route_gets_the_templates_response(project: Path) -> None:
    response = get(load(project), "/")

    assert (response.status_code, response.text) == (404, "no such page")
    assert response.headers["Cache-Control"] == "no-store"

    own_status = TEMPLATE.replace("          StatusCode: 404\n", "")
    (project / "template.yaml").write_text(own_status)
    assert get(load(project), "/").status_code == 403


def test_request_beyond_api_gateways_quota_is_refused(project: Path) -> None:
    gateway = load(project)

    assert get(gateway, "/notes?" + "x" * 10_000).status_code == 200
    assert get(gateway, "/notes?" + "x" * 10_240).status_code == 431
    assert get(gateway, "/notes", b"", ("A", "x" * 10_240)).status_code == 431
    assert get(gateway, body=bytes(10 * 1024 * 1024)).status_code == 200
    too_large = get(gateway, body=bytes(10 * 1024 * 1024 + 1))
    assert too_large.status_code == 413
    assert too_large.json() == {"message": "Request Too Long"}


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        ("Parameters:", "Parameters: [", "ParserError"),
        ("TABLE: !Ref NotesTable", "TABLE: !Sub x", "Environment.Variables.TABLE: "),
        (
            "Table\n",
            "Table\n    Condition: X\n",
            "Table.NotesTable.Condition: is not served ('X')",
        ),
        ("Type: Api, ", "Type: HttpApi, ", "ListNotes.Events.Get.Type: "),
        ("Method: get", "Method: any", "ListNotes.Events.Get.Properties.Method: "),
        ("/{kind}/", "/{kind+}/", "ReadNote.Events.Get.Properties.Path: "),
        ("/notes,", "/notes, Auth: {},", "ListNotes.Events.Get.Properties.Auth: "),
        ("StageName:", "Cors: '*'\n      StageName:", "Serverless::Api.Api.Cors: "),
        ("  Function:", "  HttpApi: {}\n  Function:", "Globals.HttpApi"),
        ("DynamoDB::Table", "Serverless::SimpleTable", "Serverless::SimpleTable: "),
        ("'no-store'", "context.x", "Headers.Cache-Control: "),
        ("no such page", "$context.path", "ResponseTemplates.text/plain: "),
        ("python3.13", "nodejs22.x", "Function.ListNotes.Runtime: "),
        ("Timeout: 10", "Layers: [arn]", "ListNotes: {'arn'} is not an API or a layer"),
        ("{TABLE:", "{STAGE: a, TABLE:", "another function disagree on STAGE"),
        (", RestApiId: !Ref Api", "", "{'ServerlessRestApi'} is not an API"),
    ],
)
def test_template_that_it_does_not_know(
    tmp_path: Path, before: str, after: str, refused: str
) -> None:
    (tmp_path / "template.yaml").write_text(TEMPLATE.replace(before, after))

    with pytest.raises(LocalError) as error:
        template.load(tmp_path / "template.yaml", {})

    assert refused in str(error.value)


def test_handler_that_cannot_be_loaded_leaves_the_old_one_working(
    project: Path,
) -> None:
    old, shared = load(project), sys.modules[SHARED]

    with pytest.raises(LocalError, match=r"SyntaxError: .*code/notes/app.py, line 2\)"):
        load(project, "x = 1\ndef handler(\n")

    assert sys.modules[SHARED] is shared
    new = load(project, ECHO.replace("200", "201"))
    assert get(old).status_code == 200
    assert get(new).status_code == 201
    assert sys.modules[SHARED] is not shared


def returning(project: Path, code: str) -> httpx2.Response:
    """Ask functions that consist of this line."""
    return get(load(project, f"def handler(event, context):\n    {code}\n"))


def test_function_returns_bytes_and_a_header_twice(project: Path) -> None:
    cookies = {"multiValueHeaders": {"Set-Cookie": ["a=1", "b=2"]}}
    body = {"statusCode": 200, "body": "/w==", "isBase64Encoded": True}

    response = returning(project, f"return {cookies | body}")

    assert response.content == b"\xff"
    assert response.headers.get_list("Set-Cookie") == ["a=1", "b=2"]


@pytest.mark.parametrize(
    ("code", "logged"),
    [
        ("raise ValueError('secret detail')", "ValueError: secret detail"),
        ("raise SystemExit", "SystemExit"),
        ("raise TimeoutError", "TimeoutError"),
        (
            r"return {'statusCode': 200, 'headers': {'A': '1\r\nB: x'}}",
            "ValueError: not a response",
        ),
    ],
)
def test_function_that_fails(
    project: Path, capsys: pytest.CaptureFixture[str], code: str, logged: str
) -> None:
    failure = returning(project, code)

    assert failure.status_code == 502
    assert failure.json() == {"message": "Internal server error"}
    assert logged in json.loads(capsys.readouterr().err)["exception"]


def test_function_that_takes_too_long(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = TEMPLATE.replace("Timeout: 10", "Timeout: 0.1")
    (project / "template.yaml").write_text(short)

    response = returning(project, "import time; time.sleep(0.3)")

    assert response.status_code == 504
    assert response.json() == {"message": "Endpoint request timed out"}
    assert json.loads(capsys.readouterr().err) == {
        "level": "ERROR",
        "request_id": response.headers["x-amzn-RequestId"],
        "message": "Task timed out after 0.10 seconds",
    }


def test_client_of_another_service_does_not_reach_aws(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project))
    for name in ("config", "credentials"):
        user = project / ".aws" / name
        user.parent.mkdir(exist_ok=True)
        user.write_text("[")  # the SDK would refuse it

    load(project)
    sqs: Any = Session().create_client("sqs")

    assert sqs.meta.endpoint_url == "http://127.0.0.1:9"
    with pytest.raises(LocalError, match=r"sqs.ListQueues: only DynamoDB is served"):
        sqs.list_queues()


def test_handlers_are_not_loaded_where_they_could_reach_aws(project: Path) -> None:
    del os.environ["AWS_ENDPOINT_URL"]

    with pytest.raises(LocalError, match="keep_local has to be called"):
        load(project)
