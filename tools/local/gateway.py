"""API Gateway's part: finds the route, invokes the function, and answers by itself when no function can."""

import asyncio
import json
import re
import time
import traceback
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

from tools.local import events
from tools.local.events import Answer, MalformedAnswerError, Request
from tools.local.functions import LoadedFunction, load, share_environment
from tools.local.output import OutputLines
from tools.local.template import GatewayResponse, Match, Route, Template

# https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-execution-service-limits-table.html
MAX_BODY_BYTES = 10 * 1024 * 1024
_INTEGRATION_TIMEOUT_S = 29.0

_THREADS = 64
_CLIENT_ERROR, _SERVER_ERROR = 400, 500

# Status and message of each response type that the local gateway uses, when the template does not change them:
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


@dataclass(frozen=True, slots=True)
class Gateway:
    """A template with all its functions loaded.

    Args:
        template: What to serve.
        functions: By logical id.
        output: Where failures of functions are reported, as in their logs on AWS.
        executor: Runs the handlers.
    """

    template: Template
    functions: Mapping[str, LoadedFunction]
    output: OutputLines
    executor: ThreadPoolExecutor

    @classmethod
    def of(cls, template: Template, output: OutputLines, executor: ThreadPoolExecutor | None = None) -> "Gateway":
        """Load every function of a template.

        Raises:
            LoadError: A handler cannot be imported.
        """
        share_environment(template.functions.values())
        functions = {name: load(definition, output) for name, definition in template.functions.items()}
        return cls(template, functions, output, executor or ThreadPoolExecutor(_THREADS, "handler"))

    async def handle(self, request: Request) -> Answer:
        """Answer a request as API Gateway would; never raises for anything that a client or a function does."""
        request_id = str(uuid.uuid4())
        try:
            answer = await self._route(request, request_id)
        except UnicodeEncodeError:  # the path or the query has bytes that no event could carry
            answer = self.respond("BAD_REQUEST_PARAMETERS", request_id)
        return Answer(answer.status, [*answer.headers, ("x-amzn-RequestId", request_id)], answer.body)

    async def _route(self, request: Request, request_id: str) -> Answer:
        request.path.encode()
        request.query.encode()
        if request.host() is None:
            return self.respond("BAD_REQUEST_PARAMETERS", request_id)
        found = self.template.find(request.method, request.path)
        if found is None:
            return self.respond("MISSING_AUTHENTICATION_TOKEN", request_id)
        return await self._integrate(request, found, request_id)

    async def _integrate(self, request: Request, match: Match, request_id: str) -> Answer:
        """Invoke the function of a route, within the function's and the gateway's time."""
        route = match.route
        function = self.functions[route.function]
        event = events.proxy_event(
            request, match, stage=self.template.stage, request_id=request_id, now=datetime.now(UTC)
        )
        seconds = min(function.definition.timeout_s, _INTEGRATION_TIMEOUT_S)
        invocation = asyncio.get_running_loop().run_in_executor(
            self.executor, function.invoke, event, time.monotonic() + seconds
        )
        try:
            async with asyncio.timeout(seconds):
                result = await invocation
        except TimeoutError as error:
            # A handler's own TimeoutError is a failure like any other; a thread that overruns cannot be stopped.
            if invocation.cancelled():
                self.output.emit(route.function, f"{request_id} Task timed out after {seconds:.2f} seconds")
                return self.respond("INTEGRATION_TIMEOUT", request_id)
            return self._failed(route, request_id, error)
        except (Exception, SystemExit) as error:
            return self._failed(route, request_id, error)
        try:
            return events.answer(result)
        except MalformedAnswerError as error:
            self.output.emit(route.function, f"{request_id} Malformed Lambda proxy response: {error}")
            return self.respond("DEFAULT_5XX", request_id)

    def _failed(self, route: Route, request_id: str, error: BaseException) -> Answer:
        for line in "".join(traceback.format_exception(error)).splitlines():
            self.output.emit(route.function, f"{request_id} {line}")
        return self.respond("DEFAULT_5XX", request_id)

    def respond(self, kind: str, request_id: str) -> Answer:
        """Make an answer of API Gateway's own, as the template's gateway responses say.

        Args:
            kind: A response type of `_TYPES`.
            request_id: For the template's `$context.requestId`.
        """
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
        return Answer(response.status or status, headers, body.encode())
