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

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tools.local.events import proxy_event, response
from tools.local.functions import Handler, LambdaContext
from tools.local.template import Function, Template

# https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-execution-service-limits-table.html
_MAX_BODY_BYTES = 10 * 1024 * 1024
_INTEGRATION_TIMEOUT_S = 29.0
_THREADS = 64

# Status and message of each response type that the local gateway uses, where the template does not change them:
# https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html
_TYPES: Mapping[str, tuple[int, str]] = {
    "MISSING_AUTHENTICATION_TOKEN": (403, "Missing Authentication Token"),
    "REQUEST_TOO_LARGE": (413, "Request Too Long"),
    "INTEGRATION_TIMEOUT": (504, "Endpoint request timed out"),
    # What a function's failure gets: no type of its own, so the default of 5XX with the status 502.
    "DEFAULT_5XX": (502, "Internal server error"),
}


class Gateway:
    """A template and its handlers (by the logical ids of their functions)."""

    def __init__(self, template: Template, handlers: Mapping[str, Handler]) -> None:
        self.template = template
        self._handlers = handlers
        self._executor = ThreadPoolExecutor(_THREADS, "handler")

    async def handle(self, request: Request) -> Response:
        """Answer a request as API Gateway would; never raises for anything that a client or a function does."""
        request_id, body = str(uuid.uuid4()), bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > _MAX_BODY_BYTES:
                    return self._own("REQUEST_TOO_LARGE", request_id)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        route, parameters = self.template.find(request.method, request.scope["raw_path"].decode("latin-1"))
        if route is None:
            return self._own("MISSING_AUTHENTICATION_TOKEN", request_id)
        event = proxy_event(
            request.scope,
            bytes(body),
            route,
            parameters,
            stage=self.template.stage,
            request_id=request_id,
            now=datetime.now(UTC),
        )
        made = await self._integrate(self.template.functions[route.function], event, request_id)
        made.headers["x-amzn-RequestId"] = request_id
        return made

    def invoke(self, function: Function, event: dict[str, Any], seconds: float) -> Any:
        """Call a function's handler in this thread."""
        context = LambdaContext(function.logical_id, function.memory_mb, time.monotonic() + seconds)
        return self._handlers[function.logical_id](event, context)

    async def _integrate(self, function: Function, event: dict[str, Any], request_id: str) -> Response:
        """Invoke a function, within its own time and the gateway's."""
        seconds = min(function.timeout_s, _INTEGRATION_TIMEOUT_S)
        invocation = asyncio.get_running_loop().run_in_executor(self._executor, self.invoke, function, event, seconds)
        try:
            async with asyncio.timeout(seconds):
                return response(await invocation)
        except (Exception, SystemExit) as error:
            # As Lambda's runtime logs it. A thread that overruns cannot be stopped.
            timed_out = invocation.cancelled()  # or else the function itself has raised TimeoutError
            message = f"Task timed out after {seconds:.2f} seconds" if timed_out else "The function failed."
            trace = "" if timed_out else "".join(traceback.format_exception(error))
            line = {"level": "ERROR", "message": message, "request_id": request_id, "exception": trace}
            sys.stderr.write(json.dumps(line) + "\n")
            return self._own("INTEGRATION_TIMEOUT" if timed_out else "DEFAULT_5XX", request_id)

    def _own(self, kind: str, request_id: str) -> Response:
        """Make a response of API Gateway's own, of one of `_TYPES`, as the template says."""
        status, message = _TYPES[kind]
        defaults = self.template.gateway_responses.get(f"DEFAULT_{str(status)[0]}XX", {})
        changed = self.template.gateway_responses.get(kind, defaults)
        bodies = changed.get("ResponseTemplates") or {"application/json": '{"message":$context.error.messageString}'}
        media_type, body = next(iter(bodies.items()))
        context = {"error.message": message, "error.messageString": json.dumps(message), "requestId": request_id}
        body = re.sub(r"\$context\.([A-Za-z]+(?:\.[A-Za-z]+)*)", lambda match: context.get(match[1], ""), body)
        headers = {"Content-Type": media_type, "x-amzn-RequestId": request_id, **_fixed_headers(changed)}
        return Response(body, int(changed.get("StatusCode", status)), headers)


def _fixed_headers(gateway_response: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a gateway response: fixed values, which the template has in single quotes."""
    headers = (gateway_response.get("ResponseParameters") or {}).get("Headers", {})
    return {name: value.removeprefix("'").removesuffix("'") for name, value in headers.items()}
