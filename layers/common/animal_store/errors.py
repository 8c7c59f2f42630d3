"""Every error that a client can receive: a class for each that is raised here, and all codes."""

from types import MappingProxyType
from typing import ClassVar

STATUS_OF_CODE = MappingProxyType(
    {
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
)
"""Each `code` and its HTTP status (502 after a crash); no function answers 429 or 504."""


class ServiceError(Exception):
    """A failure that the client is told about.

    Args:
        message: For the client: what is wrong, never how the service works inside.
    """

    code: ClassVar[str] = "internal_error"
    message: ClassVar[str] = (
        "The service failed. Quote the response header x-amzn-RequestId when you report this."
    )
    headers: ClassVar[dict[str, str]] = {}

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.message)

    @property
    def status(self) -> int:
        """The HTTP status that the code stands for."""
        return STATUS_OF_CODE[self.code]


class InternalError(ServiceError):
    """A bug or a misconfiguration: the details are for the log only."""


class InvalidRequest(ServiceError):
    """The body, a parameter or a header is not what the interface asks for."""

    code = "invalid_request"


class Unauthorized(ServiceError):
    """The API key is missing or not valid (the challenge: RFC 9110, 15.5.2, and RFC 6750, 3)."""

    code = "unauthorized"
    message = "Missing or invalid API key."
    headers: ClassVar[dict[str, str]] = {"WWW-Authenticate": 'Bearer realm="animal-store"'}


class NotFound(ServiceError):
    """There is no such resource."""

    code = "not_found"
    message = "The requested resource could not be found."


class PayloadTooLarge(ServiceError):
    """The body is larger than any resource."""

    code = "payload_too_large"
    message = "The body must not be larger than 16 KB."


class UnsupportedMediaType(ServiceError):
    """The body is declared to be of another media type."""

    code = "unsupported_media_type"


class UnsupportedContentCoding(ServiceError):
    """The body is compressed (RFC 9110, 15.5.16, asks for the codings that are accepted)."""

    code = "unsupported_media_type"
    message = "The body must not be compressed: send it without Content-Encoding."
    headers: ClassVar[dict[str, str]] = {"Accept-Encoding": "identity"}


class IdempotencyKeyReused(ServiceError):
    """The Idempotency-Key has been used with another body."""

    code = "idempotency_key_reused"
    message = "Idempotency-Key has already been used with another body."


class ServiceUnavailable(ServiceError):
    """The store is throttled or out of reach; the same request may well succeed a moment later."""

    code = "service_unavailable"
    message = "The service cannot answer at the moment. Retry later."
    headers: ClassVar[dict[str, str]] = {"Retry-After": "1"}
