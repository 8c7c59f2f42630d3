"""A local API Gateway: finds the route of each request, and invokes the route's function.

This process imports all handlers, and one copy of the layer for all of them. Several threads run
the handlers at the same time, so a handler must not keep the state of a request in a global
variable.

The handlers get the proxy events of a REST API:
https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html

Unlike AWS:
- The names of headers are in lower case, as in ASGI.
- `requestContext` has only `domainName`, `identity.sourceIp`, `path` (without the stage, as behind
  a custom domain), `requestId` and `stage`.
- A handler's context has only `get_remaining_time_in_millis`, which is always 15 minutes, for
  pauses in a debugger.
- The size of a body is not limited. AWS itself answers 413 to a large one: above some 4.5 MB,
  perhaps with only `message`; above 10 MB, perhaps as text.
- `GET /` and `HEAD /` lead to /docs; other methods get 405. On AWS, `/` gets 404, or 403 with an
  API key.
- No function times out. 40 calls that hang block all others.
- A handler's result without `body` or `headers` becomes a 503. `multiValueHeaders` and
  `isBase64Encoded` in it are ignored. Requests are not throttled.
- If `Host` is neither 127.0.0.1 nor localhost, the response is 400 with plain text, not an Error
  object of the API.
- A path below `/v1` gets 404 if it has an encoded letter in a fixed segment (`/v1/%70ets`) or two
  slashes in a row. An empty line before a request gets 400.
- The firewall of production is missing.
- Headers that API Gateway drops (such as `Expect` and `TE`) reach the function. `WWW-Authenticate`,
  which API Gateway renames, keeps its name.
"""

import base64
import os
import runpy
import sys
import traceback
import uuid
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from tools import ROOT
from tools.local.template import Template

Handler = Callable[[dict[str, Any], Any], Any]
_CONTEXT = SimpleNamespace(get_remaining_time_in_millis=lambda: 15 * 60 * 1000)


def load_handlers(template: Template) -> dict[str, Handler]:
    """Set the template's variables, import the layer again, and import each function's handler.

    Returns:
        The handlers, by the logical ids of their functions.
    """
    for name, value in template.environment.items():
        # Skip the SDK's variables, because this process has its own settings for the SDK.
        if not name.startswith("AWS_"):
            os.environ[name] = value
    # The layer reads most environment variables when it is imported, and the tools may have
    # imported the layer before these variables were set. So make Python import the layer again.
    for name in [*sys.modules]:
        if name.partition(".")[0] == "animal_store":
            del sys.modules[name]
    handlers = {}
    for name, function in template.functions.items():
        code = f"{ROOT}/{function['CodeUri']}"
        sys.path.insert(0, code)
        module, _, attribute = function["Handler"].rpartition(".")
        handlers[name] = runpy.run_path(f"{code}/{module}.py")[attribute]
    return handlers


class Gateway:
    """A local API Gateway for a template; `handlers` maps a function's id to its handler."""

    def __init__(self, template: Template, handlers: dict[str, Handler]) -> None:
        self.template, self.handlers = template, handlers

    async def handle(self, request: Request) -> Response:
        """Answer like API Gateway: with 503 if the function fails."""
        request_id = str(uuid.uuid4())
        response = await self._route(request, request_id)
        response.headers["x-amzn-RequestId"] = request_id
        return response

    async def _route(self, request: Request, request_id: str) -> Response:
        path = request.scope["raw_path"].decode("latin-1")
        template = self.template
        body = await request.body()
        found = template.find(request.method, path)
        if not found:
            # On AWS, the route /{proxy+} answers the same.
            return self._gateway_response("MISSING_AUTHENTICATION_TOKEN")
        route, parameters = found
        event = _proxy_event(request, path, body, template.binary_media_types)
        event |= {"resource": route.resource, "pathParameters": parameters or None}
        event["requestContext"] |= {"requestId": request_id, "stage": template.stage}
        return await self._invoke_or_503(route.function, event)

    async def _invoke_or_503(self, function: str, event: dict[str, Any]) -> Response:
        """Return a function's response; if the function fails, print why, and return a 503."""
        try:
            result = await run_in_threadpool(self.invoke, function, event)
            return Response(result["body"], result["statusCode"], result["headers"])
        except (Exception, SystemExit):
            request_id = event["requestContext"]["requestId"]
            print(request_id, traceback.format_exc(), file=sys.stderr)
            return self._gateway_response("INTEGRATION_FAILURE")

    def invoke(self, function: str, event: dict[str, Any]) -> Any:
        """Call a function's handler, and return its result."""
        return self.handlers[function](event, _CONTEXT)

    def _gateway_response(self, response_type: str) -> Response:
        """Return one of the template's gateway responses, such as INTEGRATION_FAILURE."""
        declared = self.template.gateway_responses[response_type]
        headers = {
            name: quoted.strip("'")
            for name, quoted in declared["ResponseParameters"]["Headers"].items()
        }
        ((media_type, body),) = declared["ResponseTemplates"].items()
        return Response(body, declared["StatusCode"], headers, media_type)


def _proxy_event(
    request: Request, path: str, body: bytes, binary_media_types: list[str]
) -> dict[str, Any]:
    """Return the event of a request, without the members that depend on the route."""
    client = request.scope["client"][0]
    headers = _values(request.headers.items())
    headers |= {
        "x-forwarded-for": [client],
        "x-forwarded-port": [str(request.url.port or 80)],
        "x-forwarded-proto": ["http"],
    }
    query = _values(request.query_params.multi_items())
    media_type = request.headers.get("content-type", "").partition(";")[0]
    is_base64 = media_type.strip().lower() in binary_media_types
    if is_base64:
        body = base64.b64encode(body)
    return {
        "path": path,
        "httpMethod": request.method,
        "headers": {name: values[-1] for name, values in headers.items()},
        "multiValueHeaders": headers,
        "queryStringParameters": dict(request.query_params) or None,
        "multiValueQueryStringParameters": query or None,
        "stageVariables": None,
        "requestContext": {
            "domainName": request.url.hostname,
            "identity": {"sourceIp": client},
            "path": path,
        },
        "body": body.decode(errors="replace") or None,
        "isBase64Encoded": is_base64,
    }


def _values(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Map each name to its list of values, in one pass: there may be thousands of values."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return values
