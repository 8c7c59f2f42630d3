"""The errors that the clients raise: one class for each failure that callers treat differently."""

import json
import time
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2


class AnimalStoreError(Exception):
    """Base of what a call raises if it fails; control characters in its text are escaped."""

    idempotency_key: str | None = None  # of a failed creation: repeated with it, it adds once
    cursor: str | None = None  # of a page that failed: lists go on there; None for the first page
    may_pass = False  # whether the same request may get another response later
    retry_after_s: float | None = None  # how long the service asked to wait

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class NoResponseError(AnimalStoreError):
    """The service is out of reach or late, or nothing was sent (`max_wait_s`)."""

    may_pass = True


class InvalidResponseError(AnimalStoreError):
    """What answered is not the API, or is broken; trying again does not help."""


class ApiError(AnimalStoreError):
    """The API answered with an error."""

    status = 0
    code = ""  # of the Error object; empty if there is none
    message = ""  # of the Error object, or what else is known
    request_id = ""  # to quote to support

    @staticmethod
    def from_response(response: httpx2.Response, content: bytes) -> "ApiError":
        """Make the error that a response stands for."""
        try:
            body: Any = json.loads(content)
        except (ValueError, RecursionError):
            body = None
        members = body if isinstance(body, dict) else {}
        status, code = response.status_code, _text(members.get("code"))[:100]
        message = _text(members.get("message"), response.reason_phrase)[:500]
        number = request_id(response)
        quoted = f" (request {number})" if number else ""
        error = _CLASSES.get(status, ApiError)(f"{status} {code}: {message}{quoted}")
        error.status, error.code, error.message = status, code, message
        error.request_id = number
        error.retry_after_s = _seconds(response.headers.get("Retry-After", ""))
        return error


class InvalidRequestError(ApiError):
    """400, 413, 415: a parameter or the body is invalid; the message says which."""


class AuthenticationError(ApiError):
    """401: the API key is missing or invalid."""


class NotFoundError(ApiError):
    """404: there is no such animal, or the base URL is wrong."""


class IdempotencyKeyReusedError(ApiError):
    """422: the idempotency key has been used for another animal."""


class TooManyRequestsError(ApiError):
    """429."""

    may_pass = True


class ServerError(ApiError):
    """5xx."""

    may_pass = True


_CLASSES: dict[int, type[ApiError]] = {
    **dict.fromkeys((400, 413, 415), InvalidRequestError),
    401: AuthenticationError,
    404: NotFoundError,
    422: IdempotencyKeyReusedError,
    429: TooManyRequestsError,
    **dict.fromkeys(range(500, 600), ServerError),
}


def printable(text: str) -> str:
    """Escape what a terminal might obey instead of show."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def request_id(response: httpx2.Response) -> str:
    """Return what to quote to support; empty for a response that did not pass API Gateway."""
    return response.headers.get("x-amzn-RequestId", "")[:100]


def _text(value: Any, default: str = "") -> str:
    return value if isinstance(value, str) else default


def _seconds(retry_after: str) -> float | None:
    """Read a Retry-After: seconds or a date (RFC 9110, section 10.2.3)."""
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
