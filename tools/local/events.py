"""HTTP request -> REST API proxy event (payload version 1.0), and a function's result -> HTTP response.

Source: https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
"""

import base64
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from tools.local.template import Route

_UNKNOWN_IDENTITY = (
    *("accessKey", "accountId", "apiKey", "caller", "cognitoAuthenticationProvider", "cognitoAuthenticationType"),
    *("cognitoIdentityId", "cognitoIdentityPoolId", "principalOrgId", "user", "userArn"),
)


def proxy_event(  # noqa: PLR0913 - what an event is made of
    request: Request, body: bytes, route: Route, parameters: Mapping[str, str], *, stage: str, request_id: str
) -> dict[str, Any]:
    """Make the event that API Gateway would send to the function of a route.

    Two differences: header names are in lower case, as ASGI has them; and `requestContext.path` does not begin with the
    stage, because the local base URL has none: it is the path by which the client came, as behind a custom domain.
    """
    path, client, now = request.scope["raw_path"].decode("latin-1"), request.scope["client"][0], datetime.now(UTC)
    sent = ((name, value) for name, value in request.headers.items() if not name.startswith("x-forwarded-"))
    # Set by API Gateway whatever the client sent.
    own = {"For": client, "Port": str(request.url.port or 80), "Proto": "http"}
    headers = _group((*sent, *((f"X-Forwarded-{name}", value) for name, value in own.items())))
    query = _group(request.query_params.multi_items())
    try:
        text, is_base64 = body.decode(), False
    except UnicodeDecodeError:
        text, is_base64 = base64.b64encode(body).decode(), True
    return {
        "resource": route.resource,
        "path": path,
        "httpMethod": request.method,
        "headers": {name: values[-1] for name, values in headers.items()},
        "multiValueHeaders": headers,
        "queryStringParameters": {name: values[-1] for name, values in query.items()} or None,
        "multiValueQueryStringParameters": query or None,
        "pathParameters": dict(parameters) or None,
        "stageVariables": None,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "local",
            "domainName": request.url.hostname,
            "httpMethod": request.method,
            "identity": dict.fromkeys(_UNKNOWN_IDENTITY)
            | {"sourceIp": client, "userAgent": request.headers.get("user-agent")},
            "path": path,
            "protocol": f"HTTP/{request.scope['http_version']}",
            "requestId": request_id,
            "requestTime": now.strftime("%d/%b/%Y:%H:%M:%S %z"),
            "requestTimeEpoch": int(now.timestamp() * 1000),
            "resourcePath": route.resource,
            "stage": stage,
        },
        "body": text or None,
        "isBase64Encoded": is_base64,
    }


def _group(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for name, value in pairs:
        grouped.setdefault(name, []).append(value)
    return grouped


_Name = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]  # RFC 9110, section 5.6.2
_Value = Annotated[str, Field(pattern=r"^[^\x00-\x08\x0a-\x1f\x7f]*$", coerce_numbers_to_str=True)]


class _Result(BaseModel):
    """What is taken from a function; API Gateway knows `multiValueHeaders` too, which this project does not use."""

    model_config = ConfigDict(extra="forbid")

    statusCode: Annotated[int, Field(ge=200, le=599)]
    headers: dict[_Name, _Value] = {}
    body: str = ""
    isBase64Encoded: Literal[False] = False


def response(result: Any) -> Response:
    """Make the HTTP response of what a function returned."""
    try:
        read = _Result.model_validate(result)
    except ValidationError as error:
        raise ValueError(f"not a response: {error.errors(include_url=False, include_input=False)}") from None
    made = Response(read.body.encode(), read.statusCode, read.headers)
    made.headers.setdefault("Content-Type", "application/json")  # API Gateway's default
    return made
