"""The local gateway: template.yaml, the functions' events, and the answers in their place."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
import pytest
from starlette.routing import request_response
from starlette.testclient import TestClient

from tests.support.in_process import own_layer
from tools.key_table import EXAMPLE_KEY
from tools.local import LocalError, template
from tools.local.gateway import Gateway, load_handlers
from tools.local.service import load_template

TEMPLATE = """\
Parameters:
  Stage: {Type: String}
Globals:
  Function:
    Handler: app.handler
    Timeout: 10
    Environment: {Variables: {TABLE: !Ref NotesTable, AWS_ENDPOINT_URL: https://a.vpce.amazonaws.com}}
Resources:
  Api:
    Type: AWS::Serverless::Api
    Properties:
      StageName: !Ref Stage
      BinaryMediaTypes: [image~1png]
      GatewayResponses:
        DEFAULT_5XX: &response
          ResponseParameters: {Headers: {Cache-Control: "'no-store'"}}
          ResponseTemplates: {text/plain: of the template}
        MISSING_AUTHENTICATION_TOKEN: {<<: *response, StatusCode: 404}
        INTEGRATION_TIMEOUT: {<<: *response, StatusCode: 504}
  SharedLayer:
    Type: AWS::Serverless::LayerVersion
    Properties: {ContentUri: layer}
  ReadNote:
    Type: AWS::Serverless::Function
    Properties:
      Description: !Sub "${Stage}: ignored"
      CodeUri: code
      Events:
        Get: {Type: Api, Properties: {Path: "/{kind}/{id}", Method: get, RestApiId: !Ref Api}}
        GetAll: {Type: Api, Properties: {Path: "/notes/all", Method: get, RestApiId: !Ref Api}}
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
import module_of_the_layer
def handler(event, context):
    variables = [os.environ["TABLE"], os.environ.get("AWS_ENDPOINT_URL")]
    return {"statusCode": 200, "headers": {}, "body": json.dumps([event, variables])}
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """The gateway of a template, a function that echoes its event, and a layer."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code/app.py").write_text(ECHO)
    (tmp_path / "layer").mkdir()
    (tmp_path / "layer/module_of_the_layer.py").touch()
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    with own_layer():
        loaded = template.load(tmp_path / "template.yaml", {"Stage": "test"})
        yield Gateway(loaded, load_handlers(loaded))


def get(gateway: Gateway, path: str, **request: Any) -> httpx2.Response:
    application = request_response(gateway.handle)
    client = TestClient(application, "http://localhost:3000", client=("192.0.2.1", 80))
    return client.request("GET", path, **request)


def test_function_gets_the_event_of_a_rest_api(gateway: Gateway) -> None:
    headers = [("X-Forwarded-For", "6.6.6.6"), ("A", "1"), ("A", "2")]
    headers.append(("Content-Type", "Image/PNG; q=1"))

    path = "/a%2Fb%2520/1?q=1&q=2"
    response = get(gateway, path, content=b"\xff", headers=headers)

    event, variables = response.json()
    assert variables == ["animal-store-local-NotesTable", None]
    assert event.pop("headers")["a"] == "2"
    values = event.pop("multiValueHeaders")
    assert values["a"] == ["1", "2"]
    assert values["x-forwarded-for"] == ["192.0.2.1"]
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


def test_fixed_segment_of_a_route_comes_before_a_parameter(gateway: Gateway) -> None:
    event, _ = get(gateway, "/notes/all").json()

    assert event["resource"] == "/notes/all"


def test_intrinsic_function_other_than_ref_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "template.yaml"
    file.write_text(TEMPLATE.replace("CodeUri: code", "CodeUri: !Sub code"))

    with pytest.raises(LocalError, match="only !Ref is served here, not "):
        template.load(file, {"Stage": "test"})


@pytest.mark.parametrize(
    ("result", "status", "logged"),
    [
        (ValueError("secret detail"), 502, "\nValueError: secret detail\n"),
        (SystemExit, 502, "\nSystemExit\n"),
        (TimeoutError, 502, "\nTimeoutError\n"),
        (lambda *_: time.sleep(0.2), 504, " Task timed out after 0.05 seconds\n"),
    ],
)
def test_function_that_fails_gets_the_templates_response(
    gateway: Gateway,
    capsys: pytest.CaptureFixture[str],
    result: Any,
    status: int,
    logged: str,
) -> None:
    gateway.handlers["ReadNote"] = mock.Mock(side_effect=result)
    gateway.template.functions["ReadNote"].timeout_s = 0.05

    response = get(gateway, "/notes/1")

    assert (response.status_code, response.text) == (status, "of the template")
    log = capsys.readouterr().err
    assert log.startswith(response.headers["x-amzn-RequestId"])
    assert logged in log


def test_firewall_refuses_two_keys_on_any_path(gateway: Gateway) -> None:
    gateway.template.firewall = load_template(Waf="true").firewall

    headers = [("Authorization", f"Bearer {EXAMPLE_KEY}")] * 2
    response = get(gateway, "/unknown", headers=headers)

    assert response.status_code == 401


@pytest.mark.parametrize(
    ("authorization", "reason"),
    [
        ("Basic x", 'the request has no single header "Authorization: Bearer KEY"'),
        ("Bearer animal_test_...", "the key is misspelled or cut off"),
        (f"bearer  {EXAMPLE_KEY} ", "the key is unknown to this store, expired or"),
    ],
)
def test_log_says_why_a_request_is_unauthorized(
    gateway: Gateway,
    caplog: pytest.LogCaptureFixture,
    authorization: str,
    reason: str,
) -> None:
    response = {"statusCode": 401, "headers": {}, "body": ""}
    gateway.handlers["ReadNote"] = lambda *_: response
    caplog.set_level("INFO", "tools.local.gateway")

    get(gateway, "/notes/1", headers={"Authorization": authorization})

    (message,) = caplog.messages
    assert message.startswith(f"401: {reason}")


def test_9000_parameters_take_less_than_half_a_second(gateway: Gateway) -> None:
    query = "&".join(f"n{number}" for number in range(9000))

    started = time.process_time()
    get(gateway, f"/notes/1?{query}")

    assert time.process_time() - started < 0.5
