"""API Gateway's part: find the route, invoke the function, and answer for itself when no function can."""

import asyncio
import json
import re
import sys
import time
import traceback
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from tools.local import events
from tools.local.events import Request, Response
from tools.local.functions import Handler, LambdaContext
from tools.local.template import Function, GatewayResponse, Match, Template

# https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-execution-service-limits-table.html
MAX_BODY_BYTES = 10 * 1024 * 1024
_INTEGRATION_TIMEOUT_S = 29.0
_THREADS = 64
_SERVER_ERROR = 500

# Status and message of each response type that the local gateway uses, where the template does not change them:
# https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html
_TYPES: Mapping[str, tuple[int, str]] = {
    "BAD_REQUEST_PARAMETERS": (400, "Bad Request"),
    "MISSING_AUTHENTICATION_TOKEN": (403, "Missing Authentication Token"),
    "REQUEST_TOO_LARGE": (413, "Request Too Long"),
    "INTEGRATION_TIMEOUT": (504, "Endpoint request timed out"),
    # What a function's failure gets: no type of its own, so the default of 5XX with the status 502.
    "DEFAULT_5XX": (502, "Internal server error"),
}
_UNCHANGED = GatewayResponse(None, {}, {"application/json": '{"message":$context.error.messageString}'})


class Gateway:
    """A template and its handlers (by the logical ids of their functions)."""

    def __init__(self, template: Template, handlers: Mapping[str, Handler]) -> None:
        self.template = template
        self._handlers = handlers
        self._executor = ThreadPoolExecutor(_THREADS, "handler")

    async def handle(self, request: Request) -> Response:
        """Answer a request as API Gateway would; never raises for anything that a client or a function does."""
        request_id = str(uuid.uuid4())
        match = self.template.find(request.method, request.path)
        if len(request.body) > MAX_BODY_BYTES:
            response = self._own("REQUEST_TOO_LARGE", request_id)
        elif match is None:
            response = self._own("MISSING_AUTHENTICATION_TOKEN", request_id)
        else:
            response = await self._integrate(request, match, request_id)
        return Response(response.status, [*response.headers, ("x-amzn-RequestId", request_id)], response.body)

    def invoke(self, function: Function, event: dict[str, Any], seconds: float) -> Any:
        """Call a function's handler in this thread."""
        context = LambdaContext(function.logical_id, function.memory_mb, time.monotonic() + seconds)
        return self._handlers[function.logical_id](event, context)

    async def _integrate(self, request: Request, match: Match, request_id: str) -> Response:
        """Invoke the function of a route, within the function's and the gateway's time."""
        function = self.template.functions[match.route.function]
        event = events.proxy_event(
            request, match, stage=self.template.stage, request_id=request_id, now=datetime.now(UTC)
        )
        seconds = min(function.timeout_s, _INTEGRATION_TIMEOUT_S)
        invocation = asyncio.get_running_loop().run_in_executor(self._executor, self.invoke, function, event, seconds)
        try:
            async with asyncio.timeout(seconds):
                return events.response(await invocation)
        except (Exception, SystemExit) as error:
            # A handler's own TimeoutError is a failure like any other; a thread that overruns cannot be stopped.
            timed_out = invocation.cancelled()
            message = f"Task timed out after {seconds:.2f} seconds" if timed_out else "The function failed."
            _log(function.logical_id, request_id, message, None if timed_out else error)
            return self._own("INTEGRATION_TIMEOUT" if timed_out else "DEFAULT_5XX", request_id)

    def _own(self, kind: str, request_id: str) -> Response:
        """Make a response of API Gateway's own, of one of `_TYPES`, as the template's gateway responses say."""
        status, message = _TYPES[kind]
        responses = self.template.gateway_responses
        fallback = responses.get("DEFAULT_4XX" if status < _SERVER_ERROR else "DEFAULT_5XX", _UNCHANGED)
        response = responses.get(kind, fallback)
        content_type, body = next(iter((response.bodies or _UNCHANGED.bodies).items()))
        context = {
            "error.message": message,
            "error.messageString": json.dumps(message),
            "error.responseType": kind,
            "requestId": request_id,
            "stage": self.template.stage,
        }
        body = re.sub(r"\$context\.([A-Za-z]+(?:\.[A-Za-z]+)*)", lambda match: context.get(match[1], ""), body)
        headers = [*response.headers.items(), ("Content-Type", content_type)]
        return Response(response.status or status, headers, body.encode())


def _log(function: str, request_id: str, message: str, error: BaseException | None) -> None:
    """Write a line to the functions' log, as Lambda's runtime does."""
    line: dict[str, Any] = {"level": "ERROR", "message": message, "function": function, "request_id": request_id}
    if error:
        line["exception"] = "".join(traceback.format_exception(error))
    sys.stderr.write(json.dumps(line) + "\n")
