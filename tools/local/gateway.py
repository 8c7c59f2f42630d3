"""API Gateway's part: find the route, invoke the function, and answer for itself when no function can."""

import asyncio
import json
import sys
import time
import traceback
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tools.local.events import proxy_event, response
from tools.local.functions import Handler
from tools.local.template import Function, Template

# https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-execution-service-limits-table.html
_MAX_BODY_BYTES = 10 * 1024 * 1024
_INTEGRATION_TIMEOUT_S = 29.0
# What a function's failure gets: the template changes no status of DEFAULT_5XX.
_BAD_GATEWAY = 502


class Gateway:
    """A template and its handlers (by the logical ids of their functions)."""

    def __init__(self, template: Template, handlers: Mapping[str, Handler]) -> None:
        self.template = template
        self._handlers = handlers
        self._executor = ThreadPoolExecutor(64)

    async def handle(self, request: Request) -> Response:
        """Answer a request as API Gateway would; never raises for anything that a client or a function does."""
        request_id, body = str(uuid.uuid4()), bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > _MAX_BODY_BYTES:
                    return self._own("REQUEST_TOO_LARGE", request_id)
            route, parameters = self.template.find(request.method, request.scope["raw_path"].decode("latin-1"))
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except LookupError:
            return self._own("MISSING_AUTHENTICATION_TOKEN", request_id)
        event = proxy_event(request, bytes(body), route, parameters, stage=self.template.stage, request_id=request_id)
        made = await self._integrate(self.template.functions[route.function], event, request_id)
        made.headers["x-amzn-RequestId"] = request_id
        return made

    def invoke(self, function: Function, event: dict[str, Any], seconds: float) -> Any:
        """Call a function's handler in this thread."""
        deadline = time.monotonic() + seconds
        # Of https://docs.aws.amazon.com/lambda/latest/dg/python-context.html
        context = SimpleNamespace(
            function_name=function.logical_id,
            aws_request_id=str(uuid.uuid4()),
            get_remaining_time_in_millis=lambda: max(0, int((deadline - time.monotonic()) * 1000)),
        )
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
            line = {
                "level": "ERROR",
                "message": f"Task timed out after {seconds:.2f} seconds",
                "request_id": request_id,
            }
            if not timed_out:
                line |= {"message": "The function failed.", "exception": "".join(traceback.format_exception(error))}
            sys.stderr.write(json.dumps(line) + "\n")
            return self._own("INTEGRATION_TIMEOUT" if timed_out else "DEFAULT_5XX", request_id)

    def _own(self, kind: str, request_id: str) -> Response:
        """Make a response of API Gateway's own, as the template says; headers are in single quotes there.

        https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html
        """
        made = self.template.gateway_responses[kind]
        ((media_type, body),) = made["ResponseTemplates"].items()
        headers = {name: value.strip("'") for name, value in made["ResponseParameters"]["Headers"].items()}
        headers |= {"Content-Type": media_type, "x-amzn-RequestId": request_id}
        return Response(body, made.get("StatusCode", _BAD_GATEWAY), headers)
