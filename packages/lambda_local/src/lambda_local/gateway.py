"""API Gateway's part: find the route and invoke its function, or answer in its place.

The functions' handlers are imported into this process, with one copy of the layer for all of them.
On AWS each function has an execution environment. Here threads share one, so a handler must not
keep the state of a request in a global variable.

Proxy events have payload version 1.0:
https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
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
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from lambda_local import LocalError
from lambda_local.dynamodb import NOWHERE
from lambda_local.template import ACCOUNT, REGION, Function, GatewayResponse, Route, Template

# https://docs.aws.amazon.com/apigateway/latest/developerguide/
# api-gateway-execution-service-limits-table.html
_MAX_BODY_BYTES = 10 * 1024 * 1024
_MAX_HEAD_BYTES = 10_240  # of the request line and all header values together
# For what a template does not define itself.
# https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html
_GATEWAY_RESPONSES = {
    "MISSING_AUTHENTICATION_TOKEN": (HTTPStatus.FORBIDDEN, "Missing Authentication Token"),
    "REQUEST_TOO_LARGE": (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Request Too Long"),
    "INTEGRATION_TIMEOUT": (HTTPStatus.GATEWAY_TIMEOUT, "Endpoint request timed out"),
    "DEFAULT_5XX": (HTTPStatus.BAD_GATEWAY, "Internal server error"),
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
    places = re.findall(r'File "(/(?:(?!site-packages|lib/python3)[^"])+)", line (\d+)', trace)
    place = "({}, line {})".format(*places[-1]) if places else ""
    return f"{trace.strip().splitlines()[-1]} {place}"


class Gateway:
    """A template and its handlers (by the names of their functions)."""

    def __init__(self, template: Template, handlers: Mapping[str, Handler]) -> None:
        self.template, self._handlers = template, handlers
        self._executor = ThreadPoolExecutor(64)

    async def handle(self, request: Request) -> Response:
        """Answer a request as API Gateway would, whatever a client or a function does."""
        request_id, body = str(uuid.uuid4()), bytearray()
        if _head_bytes(request) > _MAX_HEAD_BYTES:
            # Before API Gateway looks for a route or a gateway response. AWS documents no status.
            content = {"message": "Request Header Fields Too Large"}
            return JSONResponse(content, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > _MAX_BODY_BYTES:
                    return self._own("REQUEST_TOO_LARGE", request_id)
            route, parameters = self.template.find(
                request.method, request.scope["raw_path"].decode("latin-1")
            )
        except (ClientDisconnect, LookupError):  # a client that has disconnected reads no response
            return self._own("MISSING_AUTHENTICATION_TOKEN", request_id)
        event = proxy_event(
            request, bytes(body), route, parameters, self.template.api.stage_name, request_id
        )
        made = await self._integrate(self.template.functions[route.function], event, request_id)
        made.headers["x-amzn-RequestId"] = request_id
        return made

    def invoke(self, function: Function, event: dict[str, Any], seconds: float) -> Any:
        """Call a function's handler in this thread."""
        deadline = time.monotonic() + seconds
        context = SimpleNamespace(
            function_name=function.name,
            function_version="$LATEST",
            invoked_function_arn=f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{function.name}",
            memory_limit_in_mb=function.memory_mb,
            aws_request_id=str(uuid.uuid4()),
            log_group_name=f"/aws/lambda/{function.name}",
            log_stream_name="local",
            identity=None,
            client_context=None,
            get_remaining_time_in_millis=lambda: int((deadline - time.monotonic()) * 1000),
        )
        return self._handlers[function.name](event, context)

    async def _integrate(
        self, function: Function, event: dict[str, Any], request_id: str
    ) -> Response:
        """Invoke a function, within its own timeout."""
        seconds = function.timeout_s
        run = asyncio.get_running_loop().run_in_executor
        try:
            async with asyncio.timeout(seconds) as limit:
                # Fails where no more threads can be started.
                invocation = run(self._executor, self.invoke, function, event, seconds)
                return response(await invocation)
        except (Exception, SystemExit) as error:
            # As Lambda's runtime logs it. A thread that overruns cannot be stopped.
            line = {"level": "ERROR", "message": "The function failed.", "request_id": request_id}
            # Otherwise, the function itself raised TimeoutError.
            timed_out = limit.expired()
            if timed_out:
                line["message"] = f"Task timed out after {seconds:.2f} seconds"
            else:
                line["exception"] = "".join(traceback.format_exception(error))
            sys.stderr.write(json.dumps(line) + "\n")
            return self._own("INTEGRATION_TIMEOUT" if timed_out else "DEFAULT_5XX", request_id)

    def _own(self, kind: str, request_id: str) -> Response:
        """Make a gateway response: the template's, where headers are in single quotes, or AWS's."""
        status, message = _GATEWAY_RESPONSES[kind]
        own = self.template.api.gateway_responses
        made = own.get(kind) or own.get(f"DEFAULT_{status // 100}XX") or GatewayResponse()
        headers = {name: value.strip("'") for name, value in made.headers.items()}
        default = {"application/json": json.dumps({"message": message})}
        ((media_type, body),) = (made.response_templates or default).items()
        headers |= {"Content-Type": media_type, "x-amzn-RequestId": request_id}
        return Response(body, made.status_code or status, headers)


def proxy_event(  # noqa: PLR0913, PLR0917 - what an event is made of
    request: Request,
    body: bytes,
    route: Route,
    parameters: Mapping[str, str],
    stage: str,
    request_id: str,
) -> dict[str, Any]:
    """Make the event that API Gateway would send to the function of a route.

    Differences: header names are in lower case, as in ASGI; `requestContext.path` does not begin
    with the stage, as behind a custom domain; and members of the identity that are null are absent.
    """
    path, client = request.scope["raw_path"].decode("latin-1"), request.scope["client"][0]
    now = datetime.now(UTC)
    sent = _values_by_name(request.headers.items())
    headers = {name: sent[name] for name in sent if not name.startswith("x-forwarded-")}
    headers |= {  # whatever the client sent
        "X-Forwarded-For": [client],
        "X-Forwarded-Port": [str(request.url.port or 80)],
        "X-Forwarded-Proto": ["http"],
    }
    query = _values_by_name(request.query_params.multi_items())
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
            "accountId": ACCOUNT,
            "apiId": "local",
            "domainName": request.url.hostname,
            "httpMethod": request.method,
            "identity": {"sourceIp": client, "userAgent": request.headers.get("user-agent")},
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


def _head_bytes(request: Request) -> int:
    """Return the size of a request line and all header values, as API Gateway limits it."""
    target = len(request.scope["raw_path"]) + len(request.scope["query_string"])
    return len(request.method) + target + sum(len(value) for _, value in request.headers.raw)


def _values_by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return values


def response(result: Any) -> Response:
    """Make the HTTP response from what a function returned."""
    headers = {name: [str(value)] for name, value in result.get("headers", {}).items()}
    headers |= result.get("multiValueHeaders", {})
    pairs = [(name, value) for name, values in headers.items() for value in values]
    if not all(value.isprintable() for _, value in pairs):
        raise ValueError(f"not a response: {result!r:.300}")
    body = result.get("body", "")
    made = Response(
        base64.b64decode(body) if result.get("isBase64Encoded") else body, result["statusCode"]
    )
    for name, value in pairs:
        made.headers.append(name, value)
    made.headers.setdefault("Content-Type", "application/json")  # API Gateway's default
    return made
