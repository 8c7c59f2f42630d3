"""The opaque `cursor` of a list: the id before the next page, bound to filter and stage.

18 bytes in base64url: the id (int64, big endian), and a checksum over it, the stage and the filter,
which rejects corrupt cursors and those of another filter or stage. The checksum is not secret and
need not be: a forged cursor only starts elsewhere in a list that its sender may read anyway.
"""

import base64
import hashlib
import re

from animal_store import settings
from animal_store.errors import InvalidRequest

_ID_BYTES = 8
_CHECKSUM_BYTES = 10
_FORMAT = re.compile(r"[0-9A-Za-z_-]{24}")  # 18 bytes in base64url need no padding


def encode(after: int, scope: str | None) -> str:
    """Write the cursor of the page that starts after an id.

    Args:
        after: The last id of the page before.
        scope: The filter of the list, None for the whole list. A list of other resources adds its
            name.
    """
    position = after.to_bytes(_ID_BYTES, signed=True)
    bound = f"{settings.STAGE}\0{scope or ''}".encode()
    checksum = hashlib.blake2b(position + bound, digest_size=_CHECKSUM_BYTES).digest()
    return base64.urlsafe_b64encode(position + checksum).decode()


def decode(cursor: str, scope: str | None) -> int:
    """Read the id after which the page starts.

    Raises:
        InvalidRequest: The cursor was not made by this stage for this list.
    """
    # Check the format first: the decoder skips characters that it does not know, or raises its own
    # errors.
    if _FORMAT.fullmatch(cursor):
        position = base64.urlsafe_b64decode(cursor)[:_ID_BYTES]
        after = int.from_bytes(position, signed=True)
        if encode(after, scope) == cursor:
            return after
    raise InvalidRequest(
        "cursor: is not a cursor of this list; "
        "take it unchanged from the Link header of the previous page."
    )
