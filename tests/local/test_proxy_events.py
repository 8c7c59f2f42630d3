"""The mapping between HTTP and proxy events, compared with AWS's documented example."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tools.local import events
from tools.local.events import MalformedResponseError, Request
from tools.local.template import Match, Route

HERE = Path(__file__).parent
NOW = datetime(2026, 11, 21, 6, 30, 15, 250_000, tzinfo=UTC)
REQUEST_ID = "deef4878-7910-11e6-8f14-25afc3e9ae33"
PETS = Match(Route("GET", "/v1/pets", "F"), {})


def http(**changes: Any) -> Request:
    values: dict[str, Any] = {
        "method": "GET",
        "path": "/v1/pets",
        "query": "",
        "headers": [("Host", "127.0.0.1:3000")],
        "body": b"",
    }
    return Request(**values | changes)


def event(request: Request, match: Match = PETS, stage: str = "local") -> dict[str, Any]:
    return events.proxy_event(request, match, stage=stage, request_id=REQUEST_ID, now=NOW)


def test_documented_example_of_aws() -> None:
    record = json.loads((Path(__file__).parent / "aws_documented_event.json").read_text("utf-8"))
    sent = record["request"]
    route = Route(sent["method"], sent["resource"], "F")
    request = Request(
        method=sent["method"],
        path=sent["path"],
        query=sent["query"],
        headers=[tuple(pair) for pair in sent["headers"]],
        body=sent["body"].encode(),
        source_ip=sent["source_ip"],
    )

    made = event(request, Match(route, route.match(request.method, request.path) or {}), "testStage")

    assert differences(record["event"], made) == {}


def differences(theirs: Any, ours: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """Find what their event has that ours has not, or has otherwise."""
    if not isinstance(theirs, dict):
        return {} if theirs == ours else {path: (theirs, ours)}
    found: dict[str, tuple[Any, Any]] = {}
    for name in theirs:
        found |= differences(theirs[name], ours.get(name, "(absent)"), f"{path}.{name}")
    return found


def test_what_is_absent_is_null() -> None:
    made = event(http())

    absent = ["queryStringParameters", "multiValueQueryStringParameters", "pathParameters", "stageVariables", "body"]
    assert {name: made[name] for name in absent} == dict.fromkeys(absent)
    assert made["isBase64Encoded"] is False


def test_body_that_is_not_utf_8_is_base64() -> None:
    made = event(http(body=b"\xff\x00"))

    assert (base64.b64decode(made["body"]), made["isBase64Encoded"]) == (b"\xff\x00", True)


def test_header_names_stay_as_sent_and_repeated_ones_are_grouped() -> None:
    made = event(http(headers=[("hOST", "a"), ("X-a", "1"), ("x-A", "2")]))

    assert made["multiValueHeaders"]["X-a"] == ["1", "2"]
    assert made["headers"]["X-a"] == "2"
    assert "x-A" not in made["headers"]
    assert made["headers"]["hOST"] == "a"


def test_forwarded_headers_are_the_gateways() -> None:
    forged = [("Host", "127.0.0.1:3000"), ("x-forwarded-proto", "https"), ("X-Forwarded-For", "6.6.6.6")]

    made = event(http(headers=forged, source_ip="127.0.0.7"))

    forwarded = {name: value for name, value in made["headers"].items() if name.lower().startswith("x-forwarded")}
    assert forwarded == {"X-Forwarded-For": "127.0.0.7", "X-Forwarded-Port": "3000", "X-Forwarded-Proto": "http"}


def test_query_is_decoded_once() -> None:
    made = event(http(query="a=%2525&b=x+y&b=&c&%64=1&e=%FF"))

    assert made["multiValueQueryStringParameters"] == {
        "a": ["%25"],
        "b": ["x y", ""],
        "c": [""],
        "d": ["1"],
        "e": ["\ufffd"],
    }


def test_request_context_tells_time_and_place() -> None:
    context = event(http(headers=[("Host", "store.example:81")]))["requestContext"]

    assert context["requestTime"] == "21/Nov/2026:06:30:15 +0000"
    assert context["requestTimeEpoch"] == 1795242615250
    assert (context["domainName"], context["domainPrefix"]) == ("store.example", "store")


def test_response_with_headers_of_both_kinds() -> None:
    given = {
        "statusCode": 201,
        "headers": {"A": "1", "B": 2, "C": "same"},
        "multiValueHeaders": {"B": ["x", True], "C": ["same"]},
        "body": "é",
    }

    response = events.response(given)

    assert response.status == 201
    assert response.headers == [("A", "1"), ("B", "2"), ("B", "x"), ("B", "true"), ("C", "same")]
    assert response.body == "é".encode()


def test_response_of_a_status_alone() -> None:
    assert events.response({"statusCode": "204"}) == events.Response(204, [], b"")


def test_response_in_base64() -> None:
    body = base64.b64encode(b"\x00\xff").decode()

    assert events.response({"statusCode": 200, "body": body, "isBase64Encoded": True}).body == b"\x00\xff"


def test_framing_is_the_servers() -> None:
    assert events.response({"statusCode": 200, "headers": {"content-LENGTH": "5", "Connection": "close"}}).headers == []


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
