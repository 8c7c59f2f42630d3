"""API Gateway's part: find the route and invoke its function, or answer in its place.

The functions' handlers are imported into this process, with one copy of the layer for all of them.
On AWS each function has an execution environment. Here threads share one, so a handler must not
keep the state of a request in a global variable.

Proxy events have payload version 1.0:
https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html

Differences:
- Names of a client's headers are in lower case, as in ASGI.
- `requestContext` has only `domainName`, `identity.sourceIp`, `path` (without the stage, as behind
  a custom domain), `requestId` and `stage`.
- A handler's context has only `get_remaining_time_in_millis`.
- No body is too large. One that is not UTF-8 arrives in Base64, as one of a binary media type does.
- A function that runs out of time gets 504, not 502.
- A `Host` that is no name of this machine gets 400 with a plain text, not an Error.
- A path with an encoded letter in a fixed segment (`/v1/%70ets`), or with two slashes in a row, is
  404. An empty line before a request is 400.
- The terminal says why a request got 401.
"""

import asyncio
import base64
import json
import logging
import os
import runpy
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from animal_store import api_key
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tools.local import LocalError
from tools.local.template import Function, Template

Handler = Callable[[dict[str, Any], Any], Any]
_UNAUTHORIZED = 401
_log = logging.getLogger(__name__)


def load_handlers(template: Template) -> Mapping[str, Handler]:
    """Import the layer, again if need be, and every handler, by logical id."""
    os.environ |= {
        name: value
        for name, value in template.environment.items()
        # The service has set those of the SDK.
        if not name.startswith("AWS_")
    }
    code = [function.code for function in template.functions.values()]
    folders = {folder.resolve() for folder in (*code, *template.layers)}
    sys.path[:0] = [str(folder) for folder in folders if str(folder) not in sys.path]
    # The layer reads its environment when it is imported; the tools may have imported parts of it.
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "")
        if not folders.isdisjoint(file.parents):
            del sys.modules[name]
    functions = template.functions.items()
    return {name: _handler(function) for name, function in functions}


def _handler(function: Function) -> Handler:
    module, _, attribute = function.handler.rpartition(".")
    path = function.code.resolve() / f"{module}.py"
    try:
        handler: Handler = runpy.run_path(str(path))[attribute]
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        raise LocalError(f"{path} cannot be loaded: {error!r}") from error
    return handler


class Gateway:
    """A template and its handlers (by the logical ids of their functions)."""

    def __init__(self, template: Template, handlers: Mapping[str, Handler]) -> None:
        self.template, self.handlers = template, handlers
        self._executor = ThreadPoolExecutor(64)

    async def handle(self, request: Request) -> Response:
        """Answer a request as API Gateway would, whatever a client or a function does."""
        request_id = str(uuid.uuid4())
        response = await self._answer(request, request_id)
        response.headers["x-amzn-RequestId"] = request_id
        return response

    async def _answer(self, request: Request, request_id: str) -> Response:
        path = request.scope["raw_path"].decode("latin-1")
        firewall = self.template.firewall
        try:
            body = await request.body()
            if firewall and not firewall.lets_through(request.headers):
                return firewall.refusal()
            route, parameters = self.template.find(request.method, path)
        # A client that has disconnected reads no response.
        except (ClientDisconnect, LookupError):
            return self._gateway_response("MISSING_AUTHENTICATION_TOKEN")
        event = _proxy_event(request, path, body, self.template.binary_media_types)
        event |= {"resource": route.resource, "pathParameters": parameters or None}
        stage = self.template.stage
        event["requestContext"] |= {"requestId": request_id, "stage": stage}
        response = await self._run(route.function, event)
        if response.status_code == _UNAUTHORIZED:
            _log.info("401: %s", _why_unauthorized(event["multiValueHeaders"]))
        return response

    async def _run(self, function: str, event: dict[str, Any]) -> Response:
        """Run a function within its time; if it fails, log that as Lambda's runtime does."""
        seconds = self.template.functions[function].timeout_s
        run = asyncio.get_running_loop().run_in_executor
        try:
            async with asyncio.timeout(seconds) as limit:
                arguments = (function, event, seconds)
                return _response(await run(self._executor, self.invoke, *arguments))
        except (Exception, SystemExit) as error:
            # A thread that overruns cannot be stopped.
            line = {
                "level": "ERROR",
                "request_id": event["requestContext"]["requestId"],
            }
            # A TimeoutError may also be the function's own.
            timed_out = limit.expired()
            if timed_out:
                line["message"] = f"Task timed out after {seconds:.2f} seconds"
            else:
                line["message"] = "The function failed."
                line["exception"] = "".join(traceback.format_exception(error))
            sys.stderr.write(json.dumps(line) + "\n")
            kind = "INTEGRATION_TIMEOUT" if timed_out else "DEFAULT_5XX"
            return self._gateway_response(kind)

    def invoke(self, function: str, event: dict[str, Any], seconds: float) -> Any:
        """Call a function's handler in this thread."""
        deadline = time.monotonic() + seconds
        context = SimpleNamespace(
            get_remaining_time_in_millis=lambda: int(
                (deadline - time.monotonic()) * 1000
            )
        )
        return self.handlers[function](event, context)

    def _gateway_response(self, kind: str) -> Response:
        """Make one of the template's gateway responses."""
        declared = self.template.gateway_responses[kind]
        # DEFAULT_5XX leaves the status as it is: here always that of a function that failed.
        status = declared.get("StatusCode", 502)
        headers = {
            name: quoted.strip("'")
            for name, quoted in declared["ResponseParameters"]["Headers"].items()
        }
        ((media_type, body),) = declared["ResponseTemplates"].items()
        return Response(body, status, headers, media_type)


def _proxy_event(
    request: Request, path: str, body: bytes, binary_media_types: list[str]
) -> dict[str, Any]:
    """Make the event that API Gateway would send, without what depends on the route."""
    client = request.scope["client"][0]
    headers = _values(request.headers.items())
    for name in [name for name in headers if name.startswith("x-forwarded-")]:
        del headers[name]
    headers |= {
        "X-Forwarded-For": [client],
        "X-Forwarded-Port": [str(request.url.port or 80)],
        "X-Forwarded-Proto": ["http"],
    }
    query = _values(request.query_params.multi_items())
    media_type = request.headers.get("content-type", "").partition(";")[0].lower()
    is_base64 = media_type.strip() in binary_media_types
    try:
        text = body.decode()
    except UnicodeDecodeError:
        is_base64 = True
    if is_base64:
        text = base64.b64encode(body).decode()
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
        "body": text or None,
        "isBase64Encoded": is_base64,
    }


def _values(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Collect the values of each name, in one pass: a request may have thousands."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return values


def _why_unauthorized(headers: Mapping[str, list[str]]) -> str:
    """Say why a request has no valid key; a client is told no more than that it has none."""
    values = headers.get("authorization", [])
    if len(values) != 1:
        return f"{len(values)} Authorization headers"
    scheme, _, key = values[0].strip().partition(" ")
    if scheme.lower() != "bearer":
        return 'the header is not "Authorization: Bearer KEY"'
    if not api_key.is_well_formed(key.strip()):
        return "the key is misspelled or cut off: its checksum does not fit"
    return (
        "the key is unknown to this store, expired or revoked (animal-store keys list)"
    )


def _response(result: Any) -> Response:
    """Make the HTTP response from what a function returned."""
    response = Response(result["body"], result["statusCode"], result["headers"])
    # The default of API Gateway.
    response.headers.setdefault("Content-Type", "application/json")
    return response
