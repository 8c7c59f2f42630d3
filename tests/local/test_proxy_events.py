"""The mapping between HTTP and proxy events, beside AWS's documented example and SAM's own local server."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tools.local import events
from tools.local.events import MalformedAnswerError, Request
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
        "protocol": "HTTP/1.1",
        "source_ip": "127.0.0.1",
        "port": 3000,
    }
    return Request(**values | changes)


def event(request: Request, match: Match = PETS, stage: str = "local") -> dict[str, Any]:
    return events.proxy_event(request, match, stage=stage, request_id=REQUEST_ID, now=NOW)


def recorded(name: str, stage: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A recorded event, and ours of the same request."""
    record = json.loads((HERE / name).read_text("utf-8"))
    sent = record["request"]
    request = http(
        method=sent["method"],
        path=sent["path"],
        query=sent["query"],
        headers=[tuple(pair) for pair in sent["headers"]],
        body=sent["body"].encode(),
        source_ip=sent.get("source_ip", "127.0.0.1"),
    )
    route = Route(sent["method"], sent["resource"], "F")
    parameters = route.match(request.method, request.path)
    assert parameters is not None
    return record["event"], event(request, Match(route, parameters), stage)


def differences(theirs: Any, ours: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """What their event has and ours has not, or otherwise."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        found: dict[str, tuple[Any, Any]] = {}
        for name in theirs:
            found |= differences(theirs[name], ours.get(name, "(absent)"), f"{path}.{name}" if path else name)
        return found
    return {} if theirs == ours else {path: (theirs, ours)}


def test_documented_example_of_aws() -> None:
    theirs, ours = recorded("aws_documented_event.json", "testStage")

    assert differences(theirs, ours) == {}


def test_event_of_sams_local_server() -> None:
    theirs, ours = recorded("sam_event.json", "local")

    # Where we leave SAM's server, which strays from AWS: it cannot see duplicate headers, puts the resource where AWS
    # has the path, decodes `path`, keeps the port in the domain, and makes a few values up.
    assert differences(theirs, ours).keys() == {
        "headers.Content-Length",
        "headers.X-Two",
        "multiValueHeaders.Content-Length",
        "multiValueHeaders.X-Two",
        "path",
        "requestContext.apiId",
        "requestContext.domainName",
        "requestContext.extendedRequestId",
        "requestContext.identity.userAgent",
        "requestContext.path",
        "requestContext.requestId",
        "requestContext.requestTime",
        "requestContext.requestTimeEpoch",
        "requestContext.resourceId",
    }
    assert ours["headers"]["X-Two"] == "two"
    assert ours["multiValueHeaders"]["X-Two"] == ["one", "two"]
    assert ours["path"] == ours["requestContext"]["path"] == "/v1/pets/a%20b"


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


@pytest.mark.parametrize(
    ("headers", "host"),
    [
        ([], ("127.0.0.1", 3000)),
        ([("Host", "localhost")], ("localhost", 3000)),
        ([("host", "localhost:81")], ("localhost", 81)),
        ([("Host", "[::1]:81")], ("[::1]", 81)),
        ([("Host", "a"), ("Host", "b")], None),
        ([("Host", "a>b")], None),
        ([("Host", "")], None),
        ([("Host", "a:999999")], None),
    ],
)
def test_host(headers: list[tuple[str, str]], host: tuple[str, int] | None) -> None:
    assert http(headers=headers).host() == host


def test_answer_with_headers_of_both_kinds() -> None:
    given = {
        "statusCode": 201,
        "headers": {"A": "1", "B": 2, "C": "same"},
        "multiValueHeaders": {"B": ["x", True], "C": ["same"]},
        "body": "é",
    }

    answer = events.answer(given)

    assert answer.status == 201
    assert answer.headers == [("A", "1"), ("B", "2"), ("B", "x"), ("B", "true"), ("C", "same")]
    assert answer.body == "é".encode()


def test_answer_of_a_status_alone() -> None:
    assert events.answer({"statusCode": "204"}) == events.Answer(204, [], b"")


def test_answer_in_base64() -> None:
    answer = events.answer({"statusCode": 200, "body": base64.b64encode(b"\x00\xff").decode(), "isBase64Encoded": True})

    assert answer.body == b"\x00\xff"


def test_framing_is_the_servers() -> None:
    assert events.answer({"statusCode": 200, "headers": {"content-LENGTH": "5", "Connection": "close"}}).headers == []


@pytest.mark.parametrize(
    "result",
    [
        None,
        "text",
        [],
        {},
        {"body": "no status"},
        {"statusCode": "two hundred"},
        {"statusCode": True},
        {"statusCode": 200.0},
        {"statusCode": 99},
        {"statusCode": 600},
        {"statusCode": 200, "body": {"an": "object"}},
        {"statusCode": 200, "body": "\ud800"},
        {"statusCode": 200, "body": "!", "isBase64Encoded": True},
        {"statusCode": 200, "headers": []},
        {"statusCode": 200, "headers": {"a b": "1"}},
        {"statusCode": 200, "headers": {"A": None}},
        {"statusCode": 200, "headers": {"A": "1\r\nSet-Cookie: x"}},
        {"statusCode": 200, "multiValueHeaders": {"A": "1"}},
        {"statusCode": 200, "unknown": 1},
        {"statusCode": 200, "body": object()},
        {"statusCode": 200, "headers": {"A": float("nan")}},
    ],
)
def test_malformed_answers(result: Any) -> None:
    with pytest.raises(MalformedAnswerError):
        events.answer(result)
