"""HTTP request -> REST API proxy event (payload version 1.0), and a function's result -> HTTP response. No I/O.

Source: https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.local.template import ACCOUNT_ID, Match

Headers = Sequence[tuple[str, str]]

_FRAMING = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding", "upgrade"})


class MalformedResponseError(Exception):
    """What a function returned is not what API Gateway takes from a proxy integration."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came: path and query still percent-encoded, header names and values in order."""

    method: str
    path: str
    query: str
    headers: Headers
    body: bytes
    protocol: str = "HTTP/1.1"
    source_ip: str = "127.0.0.1"
    port: int = 3000

    def value(self, name: str) -> str | None:
        """Return the last value of a header, whatever the case of its name."""
        return next((value for key, value in reversed(self.headers) if key.lower() == name.lower()), None)

    def host(self) -> tuple[str, int]:
        """Return the host and port that the client used."""
        host = self.value("Host") or "127.0.0.1"
        name, _, port = host.rpartition(":")
        return (name, int(port)) if port.isdecimal() else (host, self.port)


@dataclass(frozen=True, slots=True)
class Response:
    """A response: header names and values in order, the body as bytes."""

    status: int
    headers: Headers
    body: bytes


def proxy_event(request: Request, match: Match, *, stage: str, request_id: str, now: datetime) -> dict[str, Any]:
    """Make the event that API Gateway would send to the function of a route.

    The one difference: `requestContext.path` does not begin with the stage, because the local base URL has none; it is
    the path by which the client reached the service, as it is behind a custom domain.
    """
    host, port = request.host()
    headers = _group(
        [
            *((name, value) for name, value in request.headers if not name.lower().startswith("x-forwarded-")),
            # Set by API Gateway whatever the client sent.
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
            "apiId": "local",
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
                "userAgent": request.value("User-Agent"),
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


def _body(body: bytes) -> tuple[str | None, bool]:
    """Return `body` and `isBase64Encoded` of an event: null when absent, base64 for what is not UTF-8."""
    try:
        return body.decode() or None, False
    except UnicodeDecodeError:
        return base64.b64encode(body).decode(), True


def _group(pairs: Headers) -> dict[str, list[str]]:
    """Collect the values of each header under the spelling of its name that came first."""
    spelling: dict[str, str] = {}
    grouped: dict[str, list[str]] = {}
    for name, value in pairs:
        grouped.setdefault(spelling.setdefault(name.lower(), name), []).append(value)
    return grouped


_Name = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]  # RFC 9110, section 5.6.2
_Value = bool | int | float | Annotated[str, Field(pattern=r"^[^\x00-\x08\x0a-\x1f\x7f]*$")]


class _Result(BaseModel):
    """What API Gateway takes from a function."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    statusCode: Annotated[int, Field(ge=200, le=599)]
    headers: dict[_Name, _Value] | None = None
    multiValueHeaders: dict[_Name, list[_Value]] | None = None
    body: str | None = None
    isBase64Encoded: bool = False


def response(result: Any) -> Response:
    """Make the HTTP response of what a function returned."""
    try:
        read = _Result.model_validate(result)
        body = (read.body or "").encode()
        body = base64.b64decode(body, validate=True) if read.isBase64Encoded else body
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
        raise MalformedResponseError("; ".join(problems)) from None
    except ValueError as error:  # the body cannot be decoded
        raise MalformedResponseError(str(error)) from None
    # Of a pair that is in both, the one of `multiValueHeaders` stays.
    multiple = [(name, _text(value)) for name, values in (read.multiValueHeaders or {}).items() for value in values]
    single = [(name, _text(value)) for name, value in (read.headers or {}).items()]
    headers = [*(pair for pair in single if pair not in multiple), *multiple]
    return Response(read.statusCode, [pair for pair in headers if pair[0].lower() not in _FRAMING], body)


def _text(value: _Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
