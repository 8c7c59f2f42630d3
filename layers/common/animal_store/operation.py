"""Runs operations: authenticates the caller, calls the function, renders and logs its response."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

try:
    # Importing the SDK and making its client leaves little garbage. So the collector pauses, and
    # later skips the new objects. This saves 22 of a cold start's 683 million instructions.
    gc.disable()
    from animal_store.dynamodb import StoreUnavailable

    gc.freeze()
finally:
    gc.enable()

from animal_store import errors, invocation, telemetry
from animal_store.auth import Unauthorized, authenticate
from animal_store.invocation import Invocation
from animal_store.request import Caller, Event, Request
from animal_store.response import Response

_cold_start = True


class Deprecation(NamedTuple):
    """The headers of a deprecated operation.

    The header `Link` gives the URL to use instead: that of the collection, such as `/v1/pets`.

    Args:
        since: When the operation was deprecated, in seconds since 1970 (RFC 9745).
        sunset: When the operation will be removed, as an HTTP date (RFC 8594).
    """

    since: int
    sunset: str

    def headers(self, request: Request) -> dict[str, str]:
        """Return the headers of the response to a request."""
        return {
            "Deprecation": f"@{self.since}",
            "Sunset": self.sunset,
            "Link": f'<{request.collection_url()}>; rel="successor-version"',
        }


Implementation = Callable[[Request, Caller], Response]
"""A function that implements an operation. It gets a request and its caller."""

QueryParameters = Sequence[str] | Literal["ignored"]
"""The names of an operation's query parameters, or "ignored" to accept and ignore any."""

Handler = Callable[[Event, Any], dict[str, Any]]
"""The function that Lambda calls."""


def operation(
    name: str, *, parameters: QueryParameters = (), deprecation: Deprecation | None = None
) -> Callable[[Implementation], Handler]:
    """Turn a function that implements one operation into a Lambda handler.

    The module `errors` turns each `Exception` that the function raises into an error response.

    Args:
        name: The operation's `operationId` in openapi.yaml (`listPets`).
        parameters: The operation's query parameters. A request with others is refused before the
            function is called.
        deprecation: The headers to add if the operation is deprecated; else None.
    """

    def decorate(function: Implementation) -> Handler:
        def handler(event: Event, context: Any) -> dict[str, Any]:
            started = time.monotonic()
            seconds_left = context.get_remaining_time_in_millis() / 1000
            this_invocation = Invocation(deadline=started + seconds_left)
            invocation.current.set(this_invocation)
            request = Request(event)
            response, rendered = _respond(function, request, parameters, deprecation)
            telemetry.write_line(
                name,
                response,
                request.context,
                this_invocation,
                latency_ms=(time.monotonic() - started) * 1000,
                cold_start=_is_cold_start(),
                deprecated=deprecation is not None,
            )
            return rendered

        return handler

    return decorate


def _respond(
    function: Implementation,
    request: Request,
    parameters: QueryParameters,
    deprecation: Deprecation | None,
) -> tuple[Response, dict[str, Any]]:
    """Return the response to a request, and the same response in API Gateway's format."""
    headers: dict[str, str] = {}
    this_invocation = invocation.current.get()
    try:
        if deprecation:
            headers = deprecation.headers(request)
        caller = authenticate(request.header("Authorization"))
        this_invocation.key_id, this_invocation.key_label = caller.key_id, caller.key_label
        if parameters != "ignored":
            request.refuse_other_parameters(parameters)
        response = function(request, caller)
        return response, response.render(headers)
    except Exception as error:
        if isinstance(error, Unauthorized):
            this_invocation.key_id = error.key_id
        response = errors.response_to(error)
        _log_failure(error, response, request)
        return response, response.render(headers)


def _log_failure(error: Exception, response: Response, request: Request) -> None:
    """Log the exception behind a response, unless the client caused the exception."""
    ids = telemetry.request_ids(request.context)
    if isinstance(error, StoreUnavailable):
        telemetry.logger().warning("The store failed.", exc_info=error, extra=ids)
    elif response.error_code == "internal_error":
        telemetry.logger().error("The operation failed.", exc_info=error, extra=ids)


def _is_cold_start() -> bool:
    """Return True for the first request of the execution environment, then False."""
    global _cold_start
    cold_start, _cold_start = _cold_start, False
    return cold_start
