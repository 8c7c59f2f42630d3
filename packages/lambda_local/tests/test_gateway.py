"""The template, the handlers, and the mapping between HTTP and proxy events."""

import asyncio
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
from lambda_local import LocalError, template
from lambda_local.dynamodb import Database, keep_local
from lambda_local.gateway import Gateway, load_handlers
from starlette.routing import request_response

TEMPLATE = """\
Parameters:
  Stage: {Type: String, Default: production}
Globals:
  Function:
    Handler: app.handler
    Timeout: 10
    Environment: {Variables: {STAGE: !Ref Stage, BUNDLE: /opt/bundle.pem}}
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
      CodeUri: list
      Events: {Get: {Type: Api, Properties: {Path: /notes, Method: get, RestApiId: !Ref Api}}}
  ReadNote:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: read
      Events:
        Get: {Type: Api, Properties: {Path: "/{kind}/{id}", Method: get, RestApiId: !Ref Api}}
  NewestNote:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: newest
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
import lambda_local_test_layer
def handler(event, context):
    left = context.get_remaining_time_in_millis()
    stage = lambda_local_test_layer.STAGE
    return {"statusCode": 200, "body": json.dumps([stage, event, left])}
"""
SHARED = "lambda_local_test_layer"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A template, functions that echo their events, and the layer that they share."""
    for name in ("list", "read", "newest"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "app.py").write_text(ECHO)
    (tmp_path / "layer").mkdir()
    (tmp_path / "layer" / f"{SHARED}.py").write_text("import os\nSTAGE = os.environ['STAGE']\n")
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    # The age of bytecode is compared in seconds.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with (
        mock.patch.dict(os.environ),
        mock.patch.dict(sys.modules),
        closing(Database(tmp_path / "store")) as database,
    ):
        keep_local(database)
        yield tmp_path


def load(project: Path, handler: str = ECHO) -> Gateway:
    """Load a gateway, with another handler of ListNotes."""
    (project / "list/app.py").write_text(handler)
    loaded = template.load(project / "template.yaml", {"Stage": "test"})
    return Gateway(loaded, load_handlers(loaded))


def get(
    gateway: Gateway, path: str = "/notes", body: bytes = b"", **headers: str
) -> httpx2.Response:
    application = request_response(gateway.handle)
    transport = httpx2.ASGITransport(application, client=("192.0.2.1", 80))
    url = f"http://localhost:3000{path}"
    client = httpx2.AsyncClient(transport=transport, headers=headers)
    return asyncio.run(client.request("GET", url, content=body))


def test_functions_get_events(project: Path) -> None:
    gateway = load(project)
    sent = {"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Proto": "https"}

    response = get(gateway, "/a%2Fb%2520/1?q=1&q=2", b"\xff", **sent)

    stage, event, milliseconds_left = response.json()
    assert stage == "test"
    assert event["pathParameters"] == {"kind": "a/b%20", "id": "1"}
    assert event["queryStringParameters"] == {"q": "2"}
    assert event["multiValueQueryStringParameters"] == {"q": ["1", "2"]}
    assert event["multiValueHeaders"]["X-Forwarded-For"] == ["192.0.2.1"]
    assert not {"x-forwarded-for", "x-forwarded-proto"} & event["headers"].keys()
    assert (event["body"], event["isBase64Encoded"]) == ("/w==", True)
    assert response.headers["Content-Type"] == "application/json"
    assert event["requestContext"]["identity"]["sourceIp"] == "192.0.2.1"
    assert event["requestContext"]["requestId"] == response.headers["x-amzn-RequestId"]
    assert 9000 < milliseconds_left <= 10_000
    assert "BUNDLE" not in os.environ


@pytest.mark.parametrize(
    ("path", "function"),
    [("/notes/newest", "NewestNote"), ("/notes/oldest", "ReadNote"), ("/notes", "ListNotes")],
)
def test_fixed_segment_goes_before_a_parameter(project: Path, path: str, function: str) -> None:
    loaded = template.load(project / "template.yaml", {})

    assert loaded.find("GET", path)[0].function == function
    assert loaded.api.stage_name == "production"


def test_tables_have_the_names_of_their_stack(project: Path) -> None:
    loaded = template.load(project / "template.yaml", {}, stack="notes")

    assert loaded.tables["NotesTable"].request == {
        "TableName": "notes-NotesTable",
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    }


def test_path_without_a_route_gets_the_templates_response(project: Path) -> None:
    response = get(load(project), "/")

    assert (response.status_code, response.text) == (404, "no such page")
    assert response.headers["Cache-Control"] == "no-store"


def test_request_beyond_api_gateways_quota_is_refused(project: Path) -> None:
    gateway = load(project)

    assert get(gateway, "/notes?" + "x" * 10_000).status_code == 200
    assert get(gateway, "/notes?" + "x" * 10_240).status_code == 431
    assert get(gateway, A="x" * 10_240).status_code == 431
    assert get(gateway, body=bytes(10 * 1024 * 1024)).status_code == 200
    too_large = get(gateway, body=bytes(10 * 1024 * 1024 + 1))
    assert too_large.status_code == 413
    assert too_large.json() == {"message": "Request Too Long"}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("Parameters:", "Parameters: [", "cannot be used: ParserError"),
        ("STAGE: !Ref Stage", "STAGE: !Sub x", "ListNotes.Environment.Variables.STAGE: Input"),
        ("Table\n", "Table\n    Condition: X\n", "NotesTable.Condition: is not served"),
        ("Type: Api, ", "Type: HttpApi, ", "ListNotes.Events.Get.Type: Input should be 'Api'"),
        ("Method: get", "Method: any", "ListNotes.Events.Get.Properties.Method: String"),
        ("/{kind}/", "/{kind+}/", "ReadNote.Events.Get.Properties.Path: String"),
        ("/notes,", "/notes, Auth: {},", "ListNotes.Events.Get.Properties.Auth: is not served"),
        ("  Function:", "  HttpApi: {}\n  Function:", "Globals.HttpApi.*: Input should be"),
        ("DynamoDB::Table", "Serverless::SimpleTable", "AWS::Serverless::SimpleTable: is not"),
        ("BillingMode:", "StreamSpecification:", "NotesTable.StreamSpecification: is not served"),
        ("StageName:", "Cors: '*'\n      StageName:", "Serverless::Api.Api.Cors: is not served"),
        ("StageName: !Ref", "StageName: !Sub", "Serverless::Api.Api.StageName: Input"),
        ("'no-store'", "context.x", "Headers.Cache-Control: String"),
        ("no such page", "$context.path", "text/plain: String should match"),
        ("CodeUri: list", "InlineCode: x", "Function.ListNotes.InlineCode: is not served"),
        ("CodeUri: list", "Runtime: nodejs22.x", "ListNotes.Runtime: String should match"),
        ("CodeUri: list", "PackageType: Image", "ListNotes.PackageType: Input should be 'Zip'"),
        ("Timeout: 10", "Layers: [arn]", "ListNotes: {'arn'} is not an API or a layer"),
        ("Uri: list", "Uri: list\n      Environment: {Variables: {STAGE: a}}", "disagree on STAGE"),
        (", RestApiId: !Ref Api", "", "{'ServerlessRestApi'} is not an API"),
    ],
)
def test_template_that_it_does_not_know(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    (tmp_path / "template.yaml").write_text(TEMPLATE.replace(before, after))

    with pytest.raises(LocalError, match=message):
        template.load(tmp_path / "template.yaml", {})


def test_handler_that_cannot_be_loaded_leaves_the_old_one_working(project: Path) -> None:
    old, shared = load(project), sys.modules[SHARED]

    with pytest.raises(LocalError, match=r"SyntaxError: .*list/app.py, line 2\)"):
        load(project, "x = 1\ndef handler(\n")

    assert sys.modules[SHARED] is shared
    new = load(project, ECHO.replace("200", "201"))
    assert get(old).status_code == 200
    assert get(new).status_code == 201
    assert sys.modules[SHARED] is not shared


def test_function_returns_bytes_and_a_header_twice(project: Path) -> None:
    returned = {
        "statusCode": 200,
        "multiValueHeaders": {"Set-Cookie": ["a=1", "b=2"]},
        "body": "/w==",
        "isBase64Encoded": True,
    }
    gateway = load(project, f"def handler(event, context):\n    return {returned}\n")

    response = get(gateway)

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
    failure = get(load(project, f"def handler(event, context):\n    {code}\n"))

    assert failure.status_code == 502
    assert failure.json() == {"message": "Internal server error"}
    assert logged in json.loads(capsys.readouterr().err)["exception"]


def test_client_of_another_service_does_not_reach_aws(project: Path) -> None:
    load(project)
    sqs: Any = Session().create_client("sqs")

    assert sqs.meta.endpoint_url == "http://127.0.0.1:9"
    with pytest.raises(LocalError, match=r"sqs.ListQueues: only DynamoDB is served"):
        sqs.list_queues()


def test_handlers_are_not_loaded_where_they_could_reach_aws(project: Path) -> None:
    del os.environ["AWS_ENDPOINT_URL"]

    with pytest.raises(LocalError, match="keep_local has to be called"):
        load(project)


def test_no_more_than_64_handlers_run_at_once(project: Path) -> None:
    code = """\
import time
started = []
def handler(event, context):
    started.append(1)
    while len(started) < 64:
        time.sleep(0.01)
    time.sleep(0.2)
    return {"statusCode": 200, "body": str(len(started))}
"""
    application = request_response(load(project, code).handle)

    async def started_before_the_first_ends() -> int:
        transport = httpx2.ASGITransport(application)
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(transport=transport, limits=limits, timeout=60) as client:
            requests = [client.get("http://localhost/notes") for _ in range(70)]
            return min(int(answer.text) for answer in await asyncio.gather(*requests))

    assert asyncio.run(started_before_the_first_ends()) == 64


def test_function_that_takes_too_long(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "template.yaml").write_text(TEMPLATE.replace("Timeout: 10", "Timeout: 0.1"))
    gateway = load(project, "import time\ndef handler(event, context):\n    time.sleep(0.3)\n")

    response = get(gateway)

    assert response.status_code == 504
    assert response.json() == {"message": "Endpoint request timed out"}
    assert "Task timed out after 0.10 seconds" in capsys.readouterr().err
