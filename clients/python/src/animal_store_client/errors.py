"""The errors that the clients raise: one class for each kind of failure."""

import json
import time
from calendar import timegm
from email.utils import parsedate
from typing import Any

import httpx2


class AnimalStoreError(Exception):
    """The base class of the client's errors. Control characters in `str(error)` are escaped.

    Attributes:
        idempotency_key: The key of the failed creation. Repeat the call with this key and the same
            API key within 24 hours, and no second animal is added.
        cursor: The cursor of the page that could not be read, to resume the list at this page; None
            for the first page.
        is_temporary: Whether it is worth repeating the same request later.
        retry_after_s: The wait that the service asked for, in seconds; None if there is none.
    """

    idempotency_key: str | None = None
    cursor: str | None = None
    is_temporary = False
    retry_after_s: float | None = None

    def __init__(self, message: str) -> None:
        super().__init__(escape_control_characters(message))


class NoResponseError(AnimalStoreError):
    """No usable HTTP response arrived in time, or the call's turn (`max_in_flight`) never came."""

    is_temporary = True


class InvalidResponseError(AnimalStoreError):
    """The response does not come from this API; the client doesn't retry the request."""


class ApiError(AnimalStoreError):
    """The response's status is not 2xx.

    Attributes:
        status: The HTTP status.
        code: The Error object's code; empty if the response has no code.
        message: The Error object's message; HTTP's reason phrase if the response has no message.
        request_id: The request's id, to quote to support; empty if there is none.
    """

    status = 0
    code = ""
    message = ""
    request_id = ""

    @staticmethod
    def from_response(response: httpx2.Response, content: bytes) -> "ApiError":
        """Return the error that a response reports."""
        try:
            body: Any = json.loads(content)
        except (ValueError, RecursionError):
            body = None
        members = body if isinstance(body, dict) else {}
        status, code = response.status_code, str(members.get("code") or "")
        message = str(members.get("message") or response.reason_phrase)
        id_ = read_request_id(response)
        suffix = f" (request {id_})" if id_ else ""
        error = _CLASSES.get(status, ApiError)(f"{status} {code}: {message}{suffix}")
        error.status, error.code, error.message = status, code, message
        error.request_id = id_
        error.retry_after_s = _read_retry_after(response.headers.get("Retry-After", ""))
        return error


class InvalidRequestError(ApiError):
    """400, 413, 415: a parameter, a header or the body is invalid; see the message."""


class AuthenticationError(ApiError):
    """401: the API key is missing or invalid."""


class NotFoundError(ApiError):
    """404: there is no such animal or operation, or the base URL is wrong."""


class IdempotencyKeyReusedError(ApiError):
    """422: the idempotency key was already used for another animal."""


class TooManyRequestsError(ApiError):
    """429: too many requests; see Limits in openapi.yaml."""

    is_temporary = True


class ServerError(ApiError):
    """5xx: the service failed; it may have added the animal anyway."""

    is_temporary = True


_CLASSES: dict[int, type[ApiError]] = {
    **dict.fromkeys((400, 413, 415), InvalidRequestError),
    401: AuthenticationError,
    404: NotFoundError,
    422: IdempotencyKeyReusedError,
    429: TooManyRequestsError,
    **dict.fromkeys(range(500, 600), ServerError),
}


def escape_control_characters(text: str) -> str:
    """Escape control characters, so that a terminal does not obey them."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def read_request_id(response: httpx2.Response) -> str:
    """Return the request id; it is empty if the response has none."""
    return response.headers.get("x-amzn-RequestId", "")


def _read_retry_after(retry_after: str) -> float | None:
    """Return the seconds that Retry-After asks for (RFC 9110, 10.2.3); None if it asks for none."""
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        # Every date in HTTP is in UTC, even if the date does not say so.
        return max(0.0, timegm(parsedate(retry_after) or ()) - time.time())
    except (ValueError, OverflowError):
        return None
