"""API Gateway's part: find the route and invoke its function, or answer in its place.

The functions' handlers are imported into this process, with one copy of the layer for all of them.
On AWS each function has an execution environment. Here threads share one, so a handler must not
keep the state of a request in a global variable.

Proxy events have payload version 1.0:
https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
Differences: header names are in lower case, as in ASGI; `requestContext` has only `domainName`,
`identity.sourceIp`, `path` (without the stage, as behind a custom domain), `requestId` and `stage`.
"""

import asyncio
import base64
import importlib
import json
import os
import re
import runpy
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tools.local import LocalError
from tools.local.store import NOWHERE
from tools.local.template import (
    ACCOUNT,
    REGION,
    Function,
    GatewayResponse,
    Route,
    Template,
)

# https://docs.aws.amazon.com/apigateway/latest/developerguide/
# api-gateway-execution-service-limits-table.html
_MAX_BODY_BYTES = 10 * 1024 * 1024
_MAX_HEAD_BYTES = 10_240  # of the request line and all header values together
# For what a template does not define itself.
# https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html
_GATEWAY_RESPONSES = {
    "MISSING_AUTHENTICATION_TOKEN": (403, "Missing Authentication Token"),
    "REQUEST_TOO_LARGE": (413, "Request Too Long"),
    "INTEGRATION_TIMEOUT": (504, "Endpoint request timed out"),
    "DEFAULT_5XX": (502, "Internal server error"),
}
Handler = Callable[[dict[str, Any], Any], Any]


def load_handlers(template: Template) -> Mapping[str, Handler]:
    """Reimport the layer and every handler, by function name; a failure keeps the old modules."""
    if os.environ.get("AWS_ENDPOINT_URL") != NOWHERE:
        raise LocalError(
            "keep_local has to be called before handlers are loaded: they may reach AWS"
        )
    os.environ |= {
        name: value
        for name, value in template.environment.items()
        # The SDK's own are keep_local's; and Lambda unpacks a built layer to /opt.
        if not name.startswith("AWS_") and not value.startswith("/opt/")
    }
    functions = template.functions.values()
    folders = {each.code.resolve() for each in functions}
    folders |= {each.code.resolve() for each in template.layers.values()}
    sys.path[:0] = [str(folder) for folder in folders if str(folder) not in sys.path]
    importlib.invalidate_caches()
    before = {}
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "")
        if not folders.isdisjoint(file.parents):
            before[name] = sys.modules.pop(name)
    try:
        return {function.name: _handler(function) for function in functions}
    except LocalError:
        sys.modules.update(before)
        raise


def _handler(function: Function) -> Handler:
    module_name, _, attribute = function.handler.rpartition(".")
    path = function.code.resolve() / f"{module_name.replace('.', '/')}.py"
    try:
        handler: Handler = runpy.run_path(str(path))[attribute]
    except (Exception, SystemExit) as error:
        trace = "".join(traceback.format_exception(error))
        sys.stderr.write(trace)
        raise LocalError(f"{path} cannot be loaded: {summary(trace)}") from error
    return handler


def summary(trace: str) -> str:
    """Shorten a traceback to its last line and its last place in code that is not a library's."""
    places = re.findall(
        r'File "(/(?:(?!site-packages|lib/python3)[^"])+)", line (\d+)', trace
    )
    place = "({}, line {})".format(*places[-1]) if places else ""
    return f"{trace.strip().splitlines()[-1]} {place}"


class Gateway:
    """A template and its handlers (by the names of their functions)."""

    def __init__(self, template: Template, handlers: Mapping[str, Handler]) -> None:
        self.template, self._handlers = template, handlers
        self._executor = ThreadPoolExecutor(64)

    async def handle(self, request: Request) -> Response:
        """Answer a request as API Gateway would, whatever a client or a function does."""
        request_id = str(uuid.uuid4())
        response = await self._answer(request, request_id)
        response.headers["x-amzn-RequestId"] = request_id
        return response

    async def _answer(self, request: Request, request_id: str) -> Response:
        path = request.scope["raw_path"].decode("latin-1")
        head = [request.method, path, request.scope["query_string"]]
        head += request.headers.values()
        if sum(map(len, head)) > _MAX_HEAD_BYTES:
            # Before API Gateway looks for a route or a gateway response. AWS documents no answer.
            return Response(status_code=431)
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > _MAX_BODY_BYTES:
                    return self._own("REQUEST_TOO_LARGE")
            found = self.template.find(request.method, path)
        # A client that has disconnected reads no response.
        except (ClientDisconnect, LookupError):
            return self._own("MISSING_AUTHENTICATION_TOKEN")
        event = _proxy_event(request, path, bytes(body), *found)
        stage = self.template.api.stage_name
        event["requestContext"] |= {"requestId": request_id, "stage": stage}
        function = self.template.functions[found[0].function]
        seconds = function.timeout_s
        run = asyncio.get_running_loop().run_in_executor
        try:
            async with asyncio.timeout(seconds) as limit:
                # Fails where no more threads can be started.
                invocation = run(self._executor, self.invoke, function, event, seconds)
                return _response(await invocation)
        except (Exception, SystemExit) as error:
            # As Lambda's runtime logs it. A thread that overruns cannot be stopped.
            line = {"level": "ERROR", "request_id": request_id}
            # Otherwise, the function itself raised TimeoutError.
            timed_out = limit.expired()
            if timed_out:
                line["message"] = f"Task timed out after {seconds:.2f} seconds"
            else:
                line["message"] = "The function failed."
                line["exception"] = "".join(traceback.format_exception(error))
            sys.stderr.write(json.dumps(line) + "\n")
            return self._own("INTEGRATION_TIMEOUT" if timed_out else "DEFAULT_5XX")

    def invoke(self, function: Function, event: dict[str, Any], seconds: float) -> Any:
        """Call a function's handler in this thread."""
        deadline = time.monotonic() + seconds
        name = function.name
        context = SimpleNamespace(
            function_name=name,
            function_version="$LATEST",
            invoked_function_arn=f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}",
            memory_limit_in_mb=function.memory_mb,
            aws_request_id=str(uuid.uuid4()),
            log_group_name=f"/aws/lambda/{name}",
            log_stream_name="local",
            identity=None,
            client_context=None,
            get_remaining_time_in_millis=lambda: int(
                (deadline - time.monotonic()) * 1000
            ),
        )
        return self._handlers[name](event, context)

    def _own(self, kind: str) -> Response:
        """Make a gateway response: the template's, where headers are in single quotes, or AWS's."""
        status, message = _GATEWAY_RESPONSES[kind]
        own = self.template.api.gateway_responses
        made = (
            own.get(kind) or own.get(f"DEFAULT_{status // 100}XX") or GatewayResponse()
        )
        headers = {name: value.strip("'") for name, value in made.headers.items()}
        default = {"application/json": json.dumps({"message": message})}
        ((media_type, body),) = (made.response_templates or default).items()
        headers["Content-Type"] = media_type
        return Response(body, made.status_code or status, headers)


def _proxy_event(
    request: Request,
    path: str,
    body: bytes,
    route: Route,
    parameters: Mapping[str, str],
) -> dict[str, Any]:
    """Make the event that API Gateway would send to the function of a route."""
    client = request.scope["client"][0]
    headers = {
        name: request.headers.getlist(name)
        for name in request.headers
        if not name.startswith("x-forwarded-")
    }
    headers |= {  # whatever the client sent
        "X-Forwarded-For": [client],
        "X-Forwarded-Port": [str(request.url.port or 80)],
        "X-Forwarded-Proto": ["http"],
    }
    query = {name: request.query_params.getlist(name) for name in request.query_params}
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
        "queryStringParameters": dict(request.query_params) or None,
        "multiValueQueryStringParameters": query or None,
        "pathParameters": parameters or None,
        "stageVariables": None,
        "requestContext": {
            "domainName": request.url.hostname,
            "identity": {"sourceIp": client},
            "path": path,
        },
        "body": text or None,
        "isBase64Encoded": is_base64,
    }


def _response(result: Any) -> Response:
    """Make the HTTP response from what a function returned."""
    # Either may be absent or None.
    given = result.get("headers") or {}
    headers = {name: [str(value)] for name, value in given.items()}
    headers |= result.get("multiValueHeaders") or {}
    body = result.get("body", "")
    if result.get("isBase64Encoded"):
        body = base64.b64decode(body)
    response = Response(body, result["statusCode"])
    for name, values in headers.items():
        for value in values:
            if not value.isprintable():
                raise ValueError(f"not a response: {result!r:.300}")
            response.headers.append(name, value)
    response.headers.setdefault(
        "Content-Type", "application/json"
    )  # API Gateway's default
    return response
