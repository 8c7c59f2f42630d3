"""Defines the Error that a client receives for each exception, and the status of each code."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from animal_store.auth import Unauthorized
from animal_store.catalogue import IdempotencyKeyReused
from animal_store.dynamodb import StoreUnavailable
from animal_store.request import (
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    UnsupportedContentCoding,
    UnsupportedMediaType,
)
from animal_store.response import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from animal_store.models import Error

STATUS_OF_CODE: Mapping[str, int] = {
    "invalid_request": 400,
    "unauthorized": 401,
    "not_found": 404,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
    "idempotency_key_reused": 422,
    "too_many_requests": 429,
    "internal_error": 500,
    "service_unavailable": 503,
    "timeout": 504,
}
"""Each `code` and its HTTP status.

Only API Gateway answers 429 and 504. It also answers 502 for a function that crashed, with
`internal_error`.
"""


class _ErrorContents(NamedTuple):
    """The contents of an error response.

    Args:
        code: The Error's `code`.
        message: The Error's `message`; None for the text of the exception.
        headers: Headers of the response.
    """

    code: str
    message: str | None = None
    headers: Mapping[str, str] = {}


_ERRORS: Mapping[type[Exception], _ErrorContents] = {
    InvalidRequest: _ErrorContents("invalid_request"),
    # A 401 requires a challenge: RFC 9110, 15.5.2, and RFC 6750, 3.
    Unauthorized: _ErrorContents(
        "unauthorized",
        "Missing or invalid API key.",
        {"WWW-Authenticate": 'Bearer realm="animal-store"'},
    ),
    NotFound: _ErrorContents("not_found", "The requested resource could not be found."),
    PayloadTooLarge: _ErrorContents("payload_too_large", "The body must not be larger than 16 KB."),
    UnsupportedMediaType: _ErrorContents(
        "unsupported_media_type", "Content-Type must be application/json."
    ),
    # The response must name the accepted codings: RFC 9110, 15.5.16.
    UnsupportedContentCoding: _ErrorContents(
        "unsupported_media_type",
        "The body must not be compressed: send it without Content-Encoding.",
        {"Accept-Encoding": "identity"},
    ),
    IdempotencyKeyReused: _ErrorContents(
        "idempotency_key_reused", "Idempotency-Key has already been used with another body."
    ),
    StoreUnavailable: _ErrorContents(
        "service_unavailable",
        "The service cannot answer at the moment. Retry later.",
        {"Retry-After": "1"},
    ),
}
_BUG_OR_MISCONFIGURATION = _ErrorContents(
    "internal_error",
    "The service failed. Quote the response header x-amzn-RequestId when you report this.",
)


def response_to(error: Exception) -> Response:
    """Return the response to a request that failed with this exception.

    An exception that `_ERRORS` lacks becomes an `internal_error`; its text is for the log only.
    """
    contents = _ERRORS.get(type(error), _BUG_OR_MISCONFIGURATION)
    status = STATUS_OF_CODE[contents.code]
    body: Error = {
        "code": contents.code,
        "message": contents.message or str(error),
        "status": status,
    }
    return Response(status, body, contents.headers)
