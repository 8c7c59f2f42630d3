"""Splits a list into pages: a handler returns `paging.page(request, PETS)`.

A cursor is 18 bytes in base64url: the last id of the previous page (int64, big endian), and a
checksum of 10 bytes over this id, the stage, the catalogue and the filter. The checksum shows
whether a cursor is corrupt or belongs to another list. It needs no secret: a forged cursor only
leads to another page of a list that its sender may read anyway.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from animal_store import settings
from animal_store.request import InvalidRequest
from animal_store.response import Response

if TYPE_CHECKING:
    from animal_store.catalogue import Catalogue
    from animal_store.request import Request

PARAMETERS = ("limit", "cursor")
"""The query parameters of every list."""

_ID_BYTES = 8
_CHECKSUM_BYTES = 10
_FORMAT = re.compile(r"[0-9A-Za-z_-]{24}")  # 18 bytes in base64url need no padding


def page(request: Request, catalogue: Catalogue[Any, Any], **filters: str | None) -> Response:
    """Return the page that a request's parameters select from a list.

    A `Link` header (RFC 8288) leads to the next page; the last page has no such header.

    Args:
        request: The request, with the optional parameters `limit` and `cursor`.
        catalogue: The resources to list, by ascending id.
        filters: For each filter, the name of an attribute and the value that the attribute must
            have; None for any value. At most one filter may have a value.

    Raises:
        InvalidRequest: `limit` or `cursor` is invalid.
        StoreUnavailable: The store does not answer.
    """
    limit = request.integer("limit", minimum=1, maximum=100, default=20)
    active_filters = {name: value for name, value in filters.items() if value is not None}
    scope = f"{settings.STAGE}/{catalogue.partition}?{urlencode(active_filters)}".encode()
    cursor = request.parameter("cursor")
    after = 0 if cursor is None else _decode(cursor, scope)
    resources, has_next = catalogue.page(limit, after, active_filters)
    headers = {}
    if has_next:
        next_cursor = _encode(resources[-1]["id"], scope)
        url = request.collection_url(limit=limit, **active_filters, cursor=next_cursor)
        headers["Link"] = f'<{url}>; rel="next"'
    return Response(200, resources, headers)


def _encode(after: int, scope: bytes) -> str:
    """Return the cursor of the page after this id.

    Args:
        after: The last id of the previous page.
        scope: The list's stage, catalogue and filter.
    """
    position = after.to_bytes(_ID_BYTES, signed=True)
    checksum = hashlib.blake2b(position + scope, digest_size=_CHECKSUM_BYTES).digest()
    return base64.urlsafe_b64encode(position + checksum).decode()


def _decode(cursor: str, scope: bytes) -> int:
    """Return the id after which a cursor's page begins; the inverse of `_encode`.

    Raises:
        InvalidRequest: The text is not a cursor of the list that `scope` names.
    """
    # Check the format first: the decoder would skip unknown characters, or raise its own errors.
    if _FORMAT.fullmatch(cursor):
        position = base64.urlsafe_b64decode(cursor)[:_ID_BYTES]
        after = int.from_bytes(position, signed=True)
        if _encode(after, scope) == cursor:
            return after
    raise InvalidRequest(
        "cursor: is not a cursor of this list; "
        "take it unchanged from the Link header of the previous page."
    )
