"""The local gateway: how it calls functions, and what it answers and logs if they fail."""

import json
from typing import Any
from unittest import mock

import httpx2
import pytest
from starlette.routing import request_response
from starlette.testclient import TestClient

from tools.local.gateway import Gateway
from tools.local.template import load_template


def echo(event: dict[str, Any], _: object) -> dict[str, Any]:
    """Answer with the event."""
    return {"statusCode": 200, "headers": {}, "body": json.dumps(event)}


@pytest.fixture
def gateway() -> Gateway:
    """template.yaml's gateway in the stage `test`, with functions that echo their events."""
    template = load_template("test")
    return Gateway(template, dict.fromkeys(template.functions, echo))


def get(gateway: Gateway, path: str, **request: Any) -> httpx2.Response:
    application = request_response(gateway.handle)
    client = TestClient(application, "http://localhost:3000", client=("192.0.2.1", 80))
    return client.request("GET", path, **request)


def test_function_gets_the_event_of_a_rest_api(gateway: Gateway) -> None:
    """Recordings show what AWS sends.

    Path and query: LocalStack's snapshot test_lambda_aws_proxy_integration of 2024-08-02. Body:
    aws/serverless-application-model#3794 of 2025-07-22. Two values of a header: a capture of
    2026-07-10 in us-west-2.
    """
    headers = [("X-Forwarded-For", "6.6.6.6"), ("A", "1"), ("A", "2")]
    headers.append(("Content-Type", "Application/JSON; q=1"))

    path = "/v1/pets/a%2Fb%2520/?q=1&q=2&e=&s=x+y"
    response = get(gateway, path, content=b"\xff", headers=headers)

    event = response.json()
    assert event.pop("headers")["a"] == "2"
    multi_value_headers = event.pop("multiValueHeaders")
    assert multi_value_headers["a"] == ["1", "2"]
    assert multi_value_headers["x-forwarded-for"] == ["192.0.2.1"]
    assert event == {
        "resource": "/v1/pets/{petId}",
        "path": "/v1/pets/a%2Fb%2520/",
        "httpMethod": "GET",
        "queryStringParameters": {"q": "2", "e": "", "s": "x y"},
        "multiValueQueryStringParameters": {"q": ["1", "2"], "e": [""], "s": ["x y"]},
        "pathParameters": {"petId": "a%2Fb%2520"},
        "stageVariables": None,
        "requestContext": {
            "domainName": "localhost",
            "identity": {"sourceIp": "192.0.2.1"},
            "path": "/v1/pets/a%2Fb%2520/",
            "requestId": response.headers["x-amzn-RequestId"],
            "stage": "test",
        },
        "body": "/w==",
        "isBase64Encoded": True,
    }


@pytest.mark.parametrize(
    ("error", "expected_log"),
    [
        (ValueError("secret detail"), "\nValueError: secret detail\n"),
        (SystemExit, "\nSystemExit\n"),
    ],
)
def test_failing_function_is_logged_and_leads_to_503(
    gateway: Gateway,
    capsys: pytest.CaptureFixture[str],
    error: Any,
    expected_log: str,
) -> None:
    gateway.handlers["GetPetFunction"] = mock.Mock(side_effect=error)

    response = get(gateway, "/v1/pets/1")

    assert response.status_code == 503
    assert response.headers["Retry-After"] == "1"
    assert response.json()["code"] == "service_unavailable"
    log = capsys.readouterr().err
    assert log.startswith(response.headers["x-amzn-RequestId"])
    assert expected_log in log
