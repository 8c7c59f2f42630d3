"""HTTP request -> REST API proxy event (payload version 1.0), and a function's answer -> HTTP response. No I/O.

Source: https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

from tools.local.template import ACCOUNT_ID, API_ID, Match

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")
_FORBIDDEN_IN_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_FRAMING = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding", "upgrade"})
_LOWEST_STATUS, _HIGHEST_STATUS = 200, 599


class MalformedAnswerError(Exception):
    """What a function returned is not what API Gateway takes from a proxy integration."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came over the socket.

    Args:
        method: As in the request line.
        path: As in the request target, percent-encoded, without the query.
        query: What follows the question mark, still encoded.
        headers: Names as sent, values without surrounding white space, in order.
        body: As sent, decoded from its transfer coding.
        protocol: For instance `HTTP/1.1`.
        source_ip: The client's address.
        port: The port that the request came to.
    """

    method: str
    path: str
    query: str
    headers: Sequence[tuple[str, str]]
    body: bytes
    protocol: str
    source_ip: str
    port: int

    def values(self, name: str) -> list[str]:
        """All values of a header, whatever the case of its name."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def host(self) -> tuple[str, int] | None:
        """The host and port that the client used, or None when the Host header is doubled or no host."""
        given = self.values("Host")
        if not given:
            return "127.0.0.1", self.port
        match = _HOST.fullmatch(given[0])
        if len(given) > 1 or match is None:
            return None
        return match[1], int(match[2] or self.port)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response for the socket: header names and values in order, the body as bytes."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


def proxy_event(request: Request, match: Match, *, stage: str, request_id: str, now: datetime) -> dict[str, Any]:
    """Make the event that API Gateway would send to the function of a route.

    The one difference: `requestContext.path` has no stage in front, because the local base URL has none either; it is
    the path by which the client reached the service, as it is behind a custom domain.

    Args:
        request: Its Host header has been checked.
        match: The route, and the path parameters.
        stage: The stage's name.
        request_id: A UUID.
        now: When the request came, with a time zone.
    """
    host, port = request.host() or ("127.0.0.1", request.port)
    headers = _group(
        [
            *((name, value) for name, value in request.headers if not name.lower().startswith("x-forwarded-")),
            # Set by API Gateway whatever the client sent: it knows better.
            ("X-Forwarded-For", request.source_ip),
            ("X-Forwarded-Port", str(port)),
            ("X-Forwarded-Proto", "http"),
        ]
    )
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(request.query, keep_blank_values=True, errors="replace"):
        query.setdefault(name, []).append(value)
    body, is_base64 = _body(request.body)
    return {
        "resource": match.route.resource,
        "path": request.path,
        "httpMethod": request.method,
        "headers": {name: values[-1] for name, values in headers.items()},
        "multiValueHeaders": headers,
        "queryStringParameters": {name: values[-1] for name, values in query.items()} or None,
        "multiValueQueryStringParameters": query or None,
        "pathParameters": dict(match.parameters) or None,
        "stageVariables": None,
        "requestContext": {
            "accountId": ACCOUNT_ID,
            "apiId": API_ID,
            "domainName": host,
            "domainPrefix": host.split(".", 1)[0],
            "extendedRequestId": base64.b64encode(request_id.encode()[:11]).decode(),
            "httpMethod": request.method,
            "identity": {
                "accessKey": None,
                "accountId": None,
                "apiKey": None,
                "caller": None,
                "cognitoAuthenticationProvider": None,
                "cognitoAuthenticationType": None,
                "cognitoIdentityId": None,
                "cognitoIdentityPoolId": None,
                "principalOrgId": None,
                "sourceIp": request.source_ip,
                "user": None,
                "userAgent": next(iter(request.values("User-Agent")), None),
                "userArn": None,
            },
            "path": request.path,
            "protocol": request.protocol,
            "requestId": request_id,
            "requestTime": now.strftime("%d/%b/%Y:%H:%M:%S %z"),
            "requestTimeEpoch": int(now.timestamp() * 1000),
            "resourceId": match.route.function.lower()[:6],
            "resourcePath": match.route.resource,
            "stage": stage,
        },
        "body": body,
        "isBase64Encoded": is_base64,
    }


def answer(result: Any) -> Answer:
    """Make the HTTP response of what a function returned.

    Args:
        result: The function's return value.

    Raises:
        MalformedAnswerError: API Gateway would answer 502; the message says what is wrong.
    """
    if not isinstance(result, dict):
        raise MalformedAnswerError(f"the function returned {type(result).__name__}, not an object")
    try:
        json.dumps(result, allow_nan=False)  # Lambda would
    except (TypeError, ValueError) as error:
        raise MalformedAnswerError(f"the function's answer is no JSON: {error}") from error
    if unknown := result.keys() - {"statusCode", "headers", "multiValueHeaders", "body", "isBase64Encoded"}:
        raise MalformedAnswerError(f"the function's answer has unknown members: {', '.join(sorted(unknown))}")
    return Answer(_status(result.get("statusCode")), _answer_headers(result), _answer_body(result))


def _status(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if type(value) is not int or not _LOWEST_STATUS <= value <= _HIGHEST_STATUS:
        raise MalformedAnswerError(f"statusCode is {value!r}")
    return value


def _answer_headers(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Merge `headers` and `multiValueHeaders`: of a pair that is in both, the one of `multiValueHeaders` stays."""
    single, multiple = ({} if result.get(name) is None else result[name] for name in ("headers", "multiValueHeaders"))
    if not isinstance(single, dict) or not isinstance(multiple, dict):
        raise MalformedAnswerError("headers and multiValueHeaders must be objects")
    pairs: list[tuple[str, str]] = []
    for name, values in multiple.items():
        if not isinstance(values, list):
            raise MalformedAnswerError(f"multiValueHeaders: the value of {name} is no array")
        pairs += [(name, _header_value(name, value)) for value in values]
    own = [(name, _header_value(name, value)) for name, value in single.items()]
    return [pair for pair in [*(pair for pair in own if pair not in pairs), *pairs] if pair[0].lower() not in _FRAMING]


def _header_value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        value = str(value).lower()
    if not _TOKEN.fullmatch(name) or not isinstance(value, str | int | float):
        raise MalformedAnswerError(f"the header {name!r} has a wrong name or value")
    text = str(value)
    if _FORBIDDEN_IN_VALUE.search(text):
        raise MalformedAnswerError(f"the value of the header {name} has control characters")
    return text


def _answer_body(result: Mapping[str, Any]) -> bytes:
    body = result.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise MalformedAnswerError(f"body is {type(body).__name__}, not a string")
    try:
        return base64.b64decode(body, validate=True) if result.get("isBase64Encoded") is True else body.encode()
    except (binascii.Error, UnicodeEncodeError) as error:
        raise MalformedAnswerError(f"body cannot be decoded: {error}") from error


def _body(body: bytes) -> tuple[str | None, bool]:
    """The `body` and `isBase64Encoded` of an event: null when absent, base64 for what is not UTF-8."""
    if not body:
        return None, False
    try:
        return body.decode("utf-8"), False
    except UnicodeDecodeError:
        return base64.b64encode(body).decode(), True


def _group(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Collect the values of each header under the spelling of its name that came first."""
    spelling: dict[str, str] = {}
    grouped: dict[str, list[str]] = {}
    for name, value in pairs:
        grouped.setdefault(spelling.setdefault(name.lower(), name), []).append(value)
    return grouped
