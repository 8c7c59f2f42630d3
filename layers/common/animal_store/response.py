"""Renders the responses of operations as API Gateway's REST proxy integration expects them.

https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_core import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_JSON_HEADERS = {"Content-Type": "application/json", **_HEADERS}

_CREATED = 201
_FIRST_ERROR = 400


class Response(NamedTuple):
    """The response of an operation.

    Args:
        status: The HTTP status.
        body: The resource or resources to return, or an Error; None for a response without
            content (204).
        headers: Headers to send in addition to those that every response has.
    """

    status: int
    body: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None
    headers: Mapping[str, str] = {}

    @property
    def created_id(self) -> int | None:
        """The id of the created resource; None if the status is not 201."""
        body: Any = self.body
        return body["id"] if self.status == _CREATED else None

    @property
    def error_code(self) -> str | None:
        """The `code` of an Error; None for a success."""
        body: Any = self.body
        return body["code"] if self.status >= _FIRST_ERROR else None

    def render(self, more_headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the response in API Gateway's format.

        Args:
            more_headers: Headers that the operation adds to each of its responses. The response's
                own `headers` override them.
        """
        body, common_headers = "", _HEADERS
        if self.body is not None:
            body, common_headers = to_json(self.body).decode(), _JSON_HEADERS
        return {
            "statusCode": self.status,
            "headers": {**common_headers, **more_headers, **self.headers},
            "body": body,
            "isBase64Encoded": False,
        }
