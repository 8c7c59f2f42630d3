"""The errors that the client raises: one base, and one class per kind of failure that callers treat differently."""

import json
import time
from email.utils import parsedate_to_datetime

import httpx


class AnimalStoreError(Exception):
    """Base of every error that the client raises. Its text is safe to print: control characters are escaped."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class NoResponseError(AnimalStoreError):
    """The service cannot be reached, or did not answer in time."""


class InvalidResponseError(AnimalStoreError):
    """What answered is not the API, or is broken; trying again does not help."""


class ApiError(AnimalStoreError):
    """The API answered with an error.

    Args:
        response: Its status and headers.
        content: Its body; anything that is not an Error object leaves `code` empty.
    """

    def __init__(self, response: httpx.Response, content: bytes) -> None:
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            body = None
        members = body if isinstance(body, dict) else {}
        self.status = response.status_code
        self.code = str(members.get("code", ""))
        self.message = str(members.get("message", response.reason_phrase))[:500]
        self.request_id = response.headers.get("x-amzn-RequestId", "")
        self.retry_after_s = _seconds(response.headers.get("Retry-After", ""))
        # Whether the same request may get another response later.
        self.may_pass = (
            self.status == httpx.codes.TOO_MANY_REQUESTS
            or self.status >= httpx.codes.INTERNAL_SERVER_ERROR
        )
        quoted = f" (request {self.request_id})" if self.request_id else ""
        super().__init__(f"{self.status} {self.code}: {self.message}{quoted}")


class InvalidRequestError(ApiError):
    """400, 413, 415: a parameter or the body is invalid; the message says which."""


class AuthenticationError(ApiError):
    """401: the API key is missing or invalid."""


class NotFoundError(ApiError):
    """404: there is no such animal, or the base URL is wrong."""


class IdempotencyKeyReusedError(ApiError):
    """422: the idempotency key has been used for another animal."""


class TooManyRequestsError(ApiError):
    """429, after every attempt."""


class ServerError(ApiError):
    """5xx, after every attempt."""


CLASSES: dict[int, type[ApiError]] = {
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


def _seconds(retry_after: str) -> float | None:
    """Read a Retry-After: seconds or a date (RFC 9110, section 10.2.3)."""
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
