"""The local gateway: the events that functions get, and the responses in their place."""

import copy
import json
import time
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
import pytest
from starlette.routing import request_response
from starlette.testclient import TestClient

from tools import CommandError
from tools.key_table import EXAMPLE_KEY
from tools.local.gateway import Gateway
from tools.local.template import load_template


def echo(event: dict[str, Any], _: object) -> dict[str, Any]:
    """Answer with the event."""
    return {"statusCode": 200, "headers": {}, "body": json.dumps(event)}


@pytest.fixture
def gateway() -> Gateway:
    """The gateway of template.yaml in the stage `test`, whose functions echo their events."""
    template = load_template("test")
    return Gateway(template, dict.fromkeys(template.functions, echo))


def get(gateway: Gateway, path: str, **request: Any) -> httpx2.Response:
    application = request_response(gateway.handle)
    client = TestClient(application, "http://localhost:3000", client=("192.0.2.1", 80))
    return client.request("GET", path, **request)


def test_function_gets_the_event_of_a_rest_api(gateway: Gateway) -> None:
    headers = [("X-Forwarded-For", "6.6.6.6"), ("A", "1"), ("A", "2")]
    headers.append(("Content-Type", "Application/JSON; q=1"))

    path = "/v1/pets/a%2Fb%2520?q=1&q=2"
    response = get(gateway, path, content=b"\xff", headers=headers)

    event = response.json()
    assert event.pop("headers")["a"] == "2"
    multi_value_headers = event.pop("multiValueHeaders")
    assert multi_value_headers["a"] == ["1", "2"]
    assert multi_value_headers["x-forwarded-for"] == ["192.0.2.1"]
    assert event == {
        "resource": "/v1/pets/{petId}",
        "path": "/v1/pets/a%2Fb%2520",
        "httpMethod": "GET",
        "queryStringParameters": {"q": "2"},
        "multiValueQueryStringParameters": {"q": ["1", "2"]},
        "pathParameters": {"petId": "a%2Fb%2520"},
        "stageVariables": None,
        "requestContext": {
            "domainName": "localhost",
            "identity": {"sourceIp": "192.0.2.1"},
            "path": "/v1/pets/a%2Fb%2520",
            "requestId": response.headers["x-amzn-RequestId"],
            "stage": "test",
        },
        "body": "/w==",
        "isBase64Encoded": True,
    }


# Each has a path and headers, a part of the event that AWS made of such a request, and whose
# recording says so.
RECORDED_EVENTS = [
    pytest.param(
        "/v1/pets/a%20b%2Bc",
        {},
        {"pathParameters": {"petId": "a%20b%2Bc"}},
        id="LocalStack's test_lambda_aws_proxy_integration, 2024-08-02",
    ),
    pytest.param(
        "/v1/pets/",
        {},
        {"path": "/v1/pets/", "resource": "/v1/pets"},
        id="the same: a slash at the end",
    ),
    pytest.param(
        "/v1/pets?a=1&a=2&b=&c=x+y%2F",
        {},
        {
            "multiValueQueryStringParameters": {
                "a": ["1", "2"],
                "b": [""],
                "c": ["x y/"],
            }
        },
        id="the same: query parameters",
    ),
    pytest.param(
        "/v1/pets",
        {"Content-Type": "application/json"},
        {"body": "e30=", "isBase64Encoded": True},
        id="aws/serverless-application-model#3794, 2025-07-22",
    ),
]


@pytest.mark.parametrize(("path", "headers", "expected"), RECORDED_EVENTS)
def test_function_gets_the_event_recorded_from_aws(
    gateway: Gateway, path: str, headers: dict[str, str], expected: dict[str, Any]
) -> None:
    event = get(gateway, path, headers=headers, content=b"{}").json()

    assert event | expected == event


def test_fixed_segment_takes_precedence_over_a_parameter(
    tmp_path: Path,
) -> None:
    document = copy.deepcopy(load_template().document)
    for name, resource in (
        ("ListPetsFunction", "/{version}/pets"),
        ("GetPetFunction", "/v1/pets"),
    ):
        events = document["Resources"][name]["Properties"]["Events"]
        events["Api"]["Properties"]["Path"] = resource
    file = tmp_path / "template.json"
    file.write_text(json.dumps(document))

    found = load_template(file=str(file)).find("GET", "/v1/pets")

    assert found
    assert found[0].function == "GetPetFunction"


def test_unsupported_intrinsic_function_is_refused(
    tmp_path: Path,
) -> None:
    document = copy.deepcopy(load_template().document)
    document["Globals"]["Function"]["Handler"] = {"Fn::Select": [0, []]}
    file = tmp_path / "template.json"
    file.write_text(json.dumps(document))

    with pytest.raises(
        CommandError, match="the local service does not support Fn::Select"
    ):
        load_template(file=str(file))


@pytest.mark.parametrize(
    ("error", "expected_log"),
    [
        (ValueError("secret detail"), "\nValueError: secret detail\n"),
        (SystemExit, "\nSystemExit\n"),
    ],
)
def test_failing_function_is_logged_and_gets_503(
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


@pytest.mark.parametrize(
    ("authorization", "reason"),
    [
        ("Basic x", 'the request has no single header "Authorization: Bearer KEY"'),
        ("Bearer animal_test_...", "the key is misspelled or cut off"),
        (f"bearer  {EXAMPLE_KEY} ", "this store does not have the key, or"),
    ],
)
def test_log_says_why_a_request_got_401(
    gateway: Gateway,
    caplog: pytest.LogCaptureFixture,
    authorization: str,
    reason: str,
) -> None:
    response = {"statusCode": 401, "headers": {}, "body": ""}
    gateway.handlers["GetPetFunction"] = lambda *_: response
    caplog.set_level("INFO", "tools.local.gateway")

    get(gateway, "/v1/pets/1", headers={"Authorization": authorization})

    (message,) = caplog.messages
    assert message.startswith(f"401: {reason}")


def test_9000_parameters_take_less_than_half_a_second(
    gateway: Gateway,
) -> None:
    query = "&".join(f"n{number}" for number in range(9000))

    started = time.process_time()
    get(gateway, f"/v1/pets?{query}")

    assert time.process_time() - started < 0.5
