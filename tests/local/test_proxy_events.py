"""The mapping between HTTP and proxy events: AWS's documented example, and what the contract suite cannot send."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tools.local import events
from tools.local.events import MalformedResponseError
from tools.local.template import Route

PETS = Route("GET", "/v1/pets", "F")


def event(
    *headers: tuple[str, str], route: Route = PETS, path: str = "/v1/pets", query: str = "", body: bytes = b""
) -> dict[str, Any]:
    scope = {
        "method": route.method,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers],
        "http_version": "1.1",
        "client": ("192.168.196.186", 1),
        "server": ("127.0.0.1", 3000),
    }
    return events.proxy_event(
        scope,
        body,
        route,
        route.match(route.method, path) or {},
        stage="testStage",
        request_id="deef4878-7910-11e6-8f14-25afc3e9ae33",
        now=datetime(2026, 11, 21, 6, 30, 15, 250_000, tzinfo=UTC),
    )


def test_documented_example_of_aws() -> None:
    record = json.loads((Path(__file__).parent / "aws_documented_event.json").read_text("utf-8"))
    sent = record["request"]
    route = Route(sent["method"], sent["resource"], "F")

    made = event(*sent["headers"], route=route, path=sent["path"], query=sent["query"], body=sent["body"].encode())

    assert differences(record["event"], made) == {}


def differences(theirs: Any, ours: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """Find what their event has that ours has not, or has otherwise."""
    if not isinstance(theirs, dict):
        return {} if theirs == ours else {path: (theirs, ours)}
    found: dict[str, tuple[Any, Any]] = {}
    for name in theirs:
        found |= differences(theirs[name], ours.get(name, "(absent)"), f"{path}.{name}")
    return found


@pytest.mark.parametrize(
    ("host", "name", "port"),
    [("localhost", "localhost", "3000"), ("a.example:81", "a.example", "81"), ("[::1]:81", "[::1]", "81")],
)
def test_where_the_client_came_to_and_from_is_the_gateways_to_say(host: str, name: str, port: str) -> None:
    made = event(("Host", host), ("x-forwarded-proto", "https"), ("X-Forwarded-For", "6.6.6.6"))

    forwarded = {name: value for name, value in made["headers"].items() if name.lower().startswith("x-forwarded")}
    assert forwarded == {
        "X-Forwarded-For": "192.168.196.186",
        "X-Forwarded-Port": port,
        "X-Forwarded-Proto": "http",
    }
    assert made["requestContext"]["domainName"] == name
    assert made["requestContext"]["requestTime"] == "21/Nov/2026:06:30:15 +0000"
    assert made["requestContext"]["requestTimeEpoch"] == 1795242615250


def test_response_with_headers_of_both_kinds() -> None:
    given = {
        "statusCode": "201",
        "headers": {"A": "1", "B": 2, "C": "same", "content-LENGTH": "5", "Connection": "close"},
        "multiValueHeaders": {"B": ["x", True], "C": ["same"], "Content-Type": ["text/plain"]},
        "body": base64.b64encode(b"\xff").decode(),
        "isBase64Encoded": True,
    }

    response = events.response(given)

    assert (response.status_code, response.body) == (201, b"\xff")
    assert response.headers.items() == [
        *(("content-length", "1"), ("a", "1"), ("b", "2"), ("b", "x"), ("b", "true"), ("c", "same")),
        ("content-type", "text/plain"),
    ]


@pytest.mark.parametrize(
    "result",
    [
        None,
        {"body": "no status"},
        {"statusCode": True},
        {"statusCode": 600},
        {"statusCode": 200, "body": {"an": "object"}},
        {"statusCode": 200, "body": "\ud800"},
        {"statusCode": 200, "body": "!", "isBase64Encoded": True},
        {"statusCode": 200, "headers": {"a b": "1"}},
        {"statusCode": 200, "headers": {"A": "1\r\nSet-Cookie: x"}},
        {"statusCode": 200, "multiValueHeaders": {"A": "1"}},
        {"statusCode": 200, "unknown": 1},
    ],
)
def test_malformed_results(result: Any) -> None:
    with pytest.raises(MalformedResponseError):
        events.response(result)
