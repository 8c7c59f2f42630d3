"""Authentication: the API key in the Authorization header (RFC 6750), looked up by its hash."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from animal_store import api_key, dynamodb, settings
from animal_store.errors import ServiceUnavailable, Unauthorized
from animal_store.validators import Validator

if TYPE_CHECKING:
    from animal_store.models import ApiKey, ApiKeyItem

_BEARER = re.compile(r"bearer +(\S+) *", re.IGNORECASE | re.ASCII)

_API_KEY_ITEM: Validator[ApiKeyItem] = Validator("ApiKeyItem")
_CACHE_SECONDS = 60
_CACHE_ENTRIES = 1024


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of a valid key.

    Args:
        key_hash: The SHA-256 of the key in hexadecimal; the store knows the caller by it.
        label: The name that the operator gave the key; logs and metrics know the caller by it.
    """

    key_hash: str
    label: str

    @property
    def key_id(self) -> str:
        """The key's id, as `keys list` shows it: the log and new animals record it."""
        return self.key_hash[: api_key.ID_LENGTH]


class _Cache:
    """Keys looked up within the last minute; the oldest is dropped when it is full.

    The clock is the wall clock: the monotonic one may stand still while Lambda freezes the
    execution environment, and a revoked key would stay valid.
    """

    def __init__(self) -> None:
        self._entries: dict[str, tuple[float, ApiKey | None]] = {}

    def clear(self) -> None:
        self._entries.clear()

    def get(self, key_hash: str) -> tuple[float, ApiKey | None] | None:
        entry = self._entries.get(key_hash)
        return entry if entry is not None and 0 <= time.time() - entry[0] < _CACHE_SECONDS else None

    def put(self, key_hash: str, entry: tuple[float, ApiKey | None]) -> None:
        self._entries.pop(key_hash, None)
        while len(self._entries) >= _CACHE_ENTRIES:
            # Another thread (only the local gateway has any) may have removed the same entry.
            self._entries.pop(next(iter(self._entries)), None)
        self._entries[key_hash] = entry


# Two, so that a flood of unknown keys cannot push the known ones out.
_known, _unknown = _Cache(), _Cache()


def forget_keys() -> None:
    """Forget which keys were looked up, as if this were another execution environment."""
    _known.clear()
    _unknown.clear()


def authenticate(authorization: list[str]) -> Caller:
    """Identify the caller.

    Args:
        authorization: Every value of the request's Authorization header.

    Raises:
        Unauthorized: There is not exactly one key, or it is malformed, unknown, expired or revoked.
        ServiceUnavailable: The key store does not answer.
    """
    match = _BEARER.fullmatch(authorization[0]) if len(authorization) == 1 else None
    if match is None or not api_key.is_well_formed(match[1]):
        raise Unauthorized
    key_hash = api_key.digest(match[1])
    dynamodb.invocation.get().key_id = key_hash[: api_key.ID_LENGTH]
    found = _find(key_hash)
    if found is None:
        raise Unauthorized
    caller = Caller(key_hash, found["label"])
    if "revoked" in found or ("expires" in found and time.time() >= found["expires"]["N"]):
        raise Unauthorized
    return caller


def _find(key_hash: str) -> ApiKey | None:
    """Look a key up in the cache, then in the store."""
    entry = _known.get(key_hash) or _unknown.get(key_hash)
    if entry is None:
        asked = time.time()
        entry = asked, look_up(key_hash)
        (_unknown if entry[1] is None else _known).put(key_hash, entry)
    return entry[1]


def look_up(key_hash: str) -> ApiKey | None:
    """Read a key from the store by its hash; None if there is none.

    Raises:
        ServiceUnavailable: The key store does not answer, or its response cannot be read.
        ClientError: The key store refuses the request: the service is misconfigured.
    """
    try:
        return dynamodb.read(
            dynamodb.client.get_item,
            _API_KEY_ITEM,
            TableName=settings.API_KEYS_TABLE,
            Key={"hash": {"S": key_hash}},
            ConsistentRead=True,
        ).get("Item")
    except ValueError as error:
        # A response that cannot be read says nothing about the key: no 401, and nothing to cache.
        raise ServiceUnavailable from error
