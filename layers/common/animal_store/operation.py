"""Runs every operation: authenticate, call the function, render its response, log and count it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from animal_store import dynamodb, telemetry
from animal_store.auth import Caller, authenticate
from animal_store.errors import InternalError, ServiceError, ServiceUnavailable
from animal_store.request import Request, collection_url, header

if TYPE_CHECKING:
    from animal_store.models import Error

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_JSON_HEADERS = {"Content-Type": "application/json", **_HEADERS}

_CREATED = 201
_cold_start = True

Event = dict[str, Any]
"""API Gateway's REST proxy event."""


@dataclass(frozen=True, slots=True)
class Response:
    """The response of an operation.

    Args:
        status: The HTTP status.
        body: The resource or resources to return; None for a response without content (204).
        headers: Headers in addition to those that every response has.
    """

    status: int
    body: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def created(self) -> int | None:
        """The id of the resource that was created; None for any other response."""
        body: Any = self.body
        return body["id"] if self.status == _CREATED else None


@dataclass(frozen=True, slots=True)
class Deprecation:
    """The headers of a deprecated operation, whose successor is the collection of its resource.

    Args:
        since: When it was deprecated, in seconds since 1970 (RFC 9745).
        sunset: When it is removed, as an HTTP date (RFC 8594).
    """

    since: int
    sunset: str

    def headers(self, event: Event) -> dict[str, str]:
        """Return the headers of the response to a request."""
        return {
            "Deprecation": f"@{self.since}",
            "Sunset": self.sunset,
            "Link": f'<{collection_url(event)}>; rel="successor-version"',
        }


_Outcome = tuple[Response, Caller | None, ServiceError | None]
"""The outcome of one invocation: the response, the caller, and the error."""

Handler = Callable[[Event, Any], dict[str, Any]]


def operation(
    name: str, deprecation: Deprecation | None = None
) -> Callable[[Callable[[Request], Response]], Handler]:
    """Turn a function that implements one operation into a Lambda handler.

    The function gets only requests from authenticated callers; it raises a `ServiceError` to refuse
    one.

    Args:
        name: The operation's name in the interface (`listPets`).
        deprecation: Set when the operation is deprecated.
    """

    def decorate(function: Callable[[Request], Response]) -> Handler:
        def handler(event: Event, context: Any) -> dict[str, Any]:
            started = time.monotonic()
            seconds_left = context.get_remaining_time_in_millis() / 1000
            invocation = dynamodb.Invocation(deadline=started + seconds_left)
            dynamodb.invocation.set(invocation)
            response, caller, error = _run(function, event)
            telemetry.write(
                name,
                response.status,
                event["requestContext"],
                latency_ms=(time.monotonic() - started) * 1000,
                store_calls=invocation.calls,
                cold_start=_is_cold_start(),
                code=error.code if error else None,
                key_id=invocation.key_id,
                key_label=caller.label if caller else None,
                created_id=response.created,
                deprecated=deprecation is not None,
            )
            body, every_response = "", _HEADERS
            if response.body is not None:
                body, every_response = to_json(response.body).decode(), _JSON_HEADERS
            return {
                "statusCode": response.status,
                "headers": {
                    **every_response,
                    **(deprecation.headers(event) if deprecation else {}),
                    **response.headers,
                },
                "body": body,
                "isBase64Encoded": False,
            }

        return handler

    return decorate


def _run(function: Callable[[Request], Response], event: Event) -> _Outcome:
    """Authenticate, call the function, and turn whatever it raises into a response."""
    caller, ids = None, telemetry.request_ids(event["requestContext"])
    try:
        caller = authenticate(header(event, "Authorization"))
        return function(Request(event, caller)), caller, None
    except ServiceUnavailable as error:
        telemetry.logger().warning("The store did not answer.", exc_info=True, extra=ids)
        return _failure(error, caller)
    except ServiceError as error:
        return _failure(error, caller)
    except Exception:
        # The last resort: the details go to the log, none of them to the client.
        telemetry.logger().exception("The operation failed.", extra=ids)
        return _failure(InternalError(), caller)


def _failure(error: ServiceError, caller: Caller | None) -> _Outcome:
    body: Error = {"code": error.code, "message": str(error), "status": error.status}
    return Response(error.status, body, error.headers), caller, error


def _is_cold_start() -> bool:
    """Tell whether this is the first request of the execution environment; True once."""
    global _cold_start
    cold_start, _cold_start = _cold_start, False
    return cold_start
