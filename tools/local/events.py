"""ASGI request -> REST API proxy event (payload version 1.0), and a function's result -> HTTP response. No I/O.

Source: https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
"""

import base64
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response
from starlette.types import Scope

from tools.local.template import ACCOUNT_ID, Route

_FRAMING = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding", "upgrade"})
_UNKNOWN_IDENTITY = (
    *("accessKey", "accountId", "apiKey", "caller", "cognitoAuthenticationProvider", "cognitoAuthenticationType"),
    *("cognitoIdentityId", "cognitoIdentityPoolId", "principalOrgId", "user", "userArn"),
)


class MalformedResponseError(Exception):
    """What a function returned is not what API Gateway takes from a proxy integration."""


def proxy_event(  # noqa: PLR0913 - what an event is made of
    scope: Scope,
    body: bytes,
    route: Route,
    parameters: Mapping[str, str],
    *,
    stage: str,
    request_id: str,
    now: datetime,
) -> dict[str, Any]:
    """Make the event that API Gateway would send to the function of a route.

    The one difference: `requestContext.path` does not begin with the stage, because the local base URL has none; it is
    the path by which the client reached the service, as it is behind a custom domain.
    """
    sent = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
    path, client = scope["raw_path"].decode("latin-1"), scope["client"][0]
    authority = next((value for name, value in sent if name.lower() == "host"), "127.0.0.1")
    host, separator, port = authority.rpartition(":")
    if not separator or not port.isdecimal():
        host, port = authority, str(scope["server"][1])
    headers = _group(
        [
            *((name, value) for name, value in sent if not name.lower().startswith("x-forwarded-")),
            # Set by API Gateway whatever the client sent.
            *(("X-Forwarded-For", client), ("X-Forwarded-Port", port), ("X-Forwarded-Proto", "http")),
        ]
    )
    query = _group(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, errors="replace"), str)
    try:
        text, is_base64 = body.decode(), False
    except UnicodeDecodeError:
        text, is_base64 = base64.b64encode(body).decode(), True
    return {
        "resource": route.resource,
        "path": path,
        "httpMethod": scope["method"],
        "headers": {name: values[-1] for name, values in headers.items()},
        "multiValueHeaders": headers,
        "queryStringParameters": {name: values[-1] for name, values in query.items()} or None,
        "multiValueQueryStringParameters": query or None,
        "pathParameters": dict(parameters) or None,
        "stageVariables": None,
        "requestContext": {
            "accountId": ACCOUNT_ID,
            "apiId": "local",
            "domainName": host,
            "domainPrefix": host.split(".", 1)[0],
            "extendedRequestId": base64.b64encode(request_id.encode()[:11]).decode(),
            "httpMethod": scope["method"],
            "identity": dict.fromkeys(_UNKNOWN_IDENTITY)
            | {"sourceIp": client, "userAgent": next((v for n, v in sent if n.lower() == "user-agent"), None)},
            "path": path,
            "protocol": f"HTTP/{scope['http_version']}",
            "requestId": request_id,
            "requestTime": now.strftime("%d/%b/%Y:%H:%M:%S %z"),
            "requestTimeEpoch": int(now.timestamp() * 1000),
            "resourceId": route.function.lower()[:6],
            "resourcePath": route.resource,
            "stage": stage,
        },
        "body": text or None,
        "isBase64Encoded": is_base64,
    }


def _group(pairs: Iterable[tuple[str, str]], fold: Any = str.lower) -> dict[str, list[str]]:
    """Collect the values of each name, for headers under the spelling that came first."""
    spelling: dict[str, str] = {}
    grouped: dict[str, list[str]] = {}
    for name, value in pairs:
        grouped.setdefault(spelling.setdefault(fold(name), name), []).append(value)
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
        body = base64.b64decode(read.body or "", validate=True) if read.isBase64Encoded else (read.body or "").encode()
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
        raise MalformedResponseError("; ".join(problems)) from None
    except ValueError as error:  # the body cannot be decoded
        raise MalformedResponseError(str(error)) from None
    # Of a pair that is in both, the one of `multiValueHeaders` stays.
    multiple = [(name, value) for name, values in (read.multiValueHeaders or {}).items() for value in values]
    single = [pair for pair in (read.headers or {}).items() if pair not in multiple]
    made = Response(body, read.statusCode)
    for name, value in (*single, *multiple):
        if name.lower() not in _FRAMING:
            made.headers.append(name, str(value).lower() if isinstance(value, bool) else str(value))
    made.headers.setdefault("Content-Type", "application/json")  # API Gateway's default
    return made
