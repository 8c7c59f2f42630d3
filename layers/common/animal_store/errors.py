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


class _Kind(NamedTuple):
    """One kind of Error.

    Args:
        code: Its `code`.
        message: Its `message`; None for the text of the exception.
        headers: Headers of the response.
    """

    code: str
    message: str | None = None
    headers: Mapping[str, str] = {}


_KINDS: Mapping[type[Exception], _Kind] = {
    InvalidRequest: _Kind("invalid_request"),
    # The challenge: RFC 9110, 15.5.2, and RFC 6750, 3.
    Unauthorized: _Kind(
        "unauthorized",
        "Missing or invalid API key.",
        {"WWW-Authenticate": 'Bearer realm="animal-store"'},
    ),
    NotFound: _Kind("not_found", "The requested resource could not be found."),
    PayloadTooLarge: _Kind("payload_too_large", "The body must not be larger than 16 KB."),
    UnsupportedMediaType: _Kind("unsupported_media_type", "Content-Type must be application/json."),
    # RFC 9110, 15.5.16, asks for the codings that are accepted.
    UnsupportedContentCoding: _Kind(
        "unsupported_media_type",
        "The body must not be compressed: send it without Content-Encoding.",
        {"Accept-Encoding": "identity"},
    ),
    IdempotencyKeyReused: _Kind(
        "idempotency_key_reused", "Idempotency-Key has already been used with another body."
    ),
    StoreUnavailable: _Kind(
        "service_unavailable",
        "The service cannot answer at the moment. Retry later.",
        {"Retry-After": "1"},
    ),
}
_BUG_OR_MISCONFIGURATION = _Kind(
    "internal_error",
    "The service failed. Quote the response header x-amzn-RequestId when you report this.",
)


def response_to(error: Exception) -> Response:
    """Return the response to a request that failed with this exception.

    Any exception without a kind of its own is an `internal_error`: its text is for the log only.
    """
    kind = _KINDS.get(type(error), _BUG_OR_MISCONFIGURATION)
    status = STATUS_OF_CODE[kind.code]
    body: Error = {"code": kind.code, "message": kind.message or str(error), "status": status}
    return Response(status, body, kind.headers)
