"""Turns exceptions into the error responses that clients receive."""

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


class _ErrorContents(NamedTuple):
    """The contents of an error response.

    Args:
        status: The HTTP status.
        code: The Error's `code`.
        message: The Error's `message`; None to use the exception's text.
        headers: Headers of the response.
    """

    status: int
    code: str
    message: str | None = None
    headers: Mapping[str, str] = {}


_ERRORS: Mapping[type, _ErrorContents] = {
    InvalidRequest: _ErrorContents(400, "invalid_request"),
    # A 401 must name the authentication scheme (RFC 9110, section 15.5.2; RFC 6750, section 3).
    Unauthorized: _ErrorContents(
        401,
        "unauthorized",
        "Missing or invalid API key.",
        {"WWW-Authenticate": 'Bearer realm="animal-store"'},
    ),
    NotFound: _ErrorContents(404, "not_found", "The requested resource could not be found."),
    PayloadTooLarge: _ErrorContents(
        413, "payload_too_large", "The body must not be larger than 16 KB."
    ),
    UnsupportedMediaType: _ErrorContents(
        415, "unsupported_media_type", "Content-Type must be application/json."
    ),
    # The response should name the accepted codings (RFC 9110, section 15.5.16).
    UnsupportedContentCoding: _ErrorContents(
        415,
        "unsupported_media_type",
        "The body must not be compressed: send it without Content-Encoding.",
        {"Accept-Encoding": "identity"},
    ),
    IdempotencyKeyReused: _ErrorContents(
        422, "idempotency_key_reused", "Idempotency-Key has already been used with another body."
    ),
    StoreUnavailable: _ErrorContents(
        503,
        "service_unavailable",
        "The service cannot answer at the moment. Retry later.",
        {"Retry-After": "1"},
    ),
    # Any other exception is a bug, a misconfiguration or damaged data. Clients do not get its text.
    Exception: _ErrorContents(
        500,
        "internal_error",
        "The service failed. Quote the response header x-amzn-RequestId when you report this.",
    ),
}


def response_to(error: Exception) -> Response:
    """Return the response to a request that failed with this exception."""
    contents = next(_ERRORS[kind] for kind in type(error).__mro__ if kind in _ERRORS)
    body: Error = {
        "code": contents.code,
        "message": contents.message or str(error),
        "status": contents.status,
    }
    return Response(contents.status, body, contents.headers)
