"""Authenticates callers by the API key in the Authorization header (RFC 6750), for `operation`."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from animal_store import api_key, dynamodb, invocation, settings
from animal_store.dynamodb import StoreUnavailable
from animal_store.validators import Validator

if TYPE_CHECKING:
    from animal_store.models import ApiKey, ApiKeyItemResponse

_BEARER = re.compile(r"bearer +(\S+) *", re.IGNORECASE | re.ASCII)

_ITEM_RESPONSE: Validator[ApiKeyItemResponse] = Validator("ApiKeyItemResponse")
_CACHE_SECONDS = 60
_CACHE_ENTRIES = 1024


class Unauthorized(Exception):
    """The API key is missing or not valid."""


class _Cache:
    """Keys looked up within the last minute; the oldest is dropped when it is full.

    The clock is the wall clock: the monotonic one may stand still while Lambda freezes the
    execution environment, and a revoked key would stay valid.
    """

    def __init__(self) -> None:
        self._entries: dict[str, tuple[float, ApiKey | None]] = {}

    def get(self, key_hash: str) -> tuple[float, ApiKey | None] | None:
        entry = self._entries.get(key_hash)
        return entry if entry is not None and 0 <= time.time() - entry[0] < _CACHE_SECONDS else None

    def put(self, key_hash: str, entry: tuple[float, ApiKey | None]) -> None:
        self._entries.pop(key_hash, None)
        while len(self._entries) >= _CACHE_ENTRIES:
            # Another thread (only the local gateway has any) may have removed the same entry.
            self._entries.pop(next(iter(self._entries)), None)
        self._entries[key_hash] = entry


# There are two caches, so that a flood of unknown keys cannot push known ones out.
_known_keys, _unknown_keys = _Cache(), _Cache()


def authenticate(authorization: list[str]) -> str:
    """Return the hash of the caller's key, and note the key in the invocation.

    Args:
        authorization: Every value of the request's Authorization header.

    Raises:
        Unauthorized: There is not exactly one key, or it is malformed, unknown, expired or revoked.
        StoreUnavailable: The key store does not answer.
    """
    match = _BEARER.fullmatch(authorization[0]) if len(authorization) == 1 else None
    if match is None or not api_key.is_well_formed(match[1]):
        raise Unauthorized
    key_hash = api_key.digest(match[1])
    run = invocation.current.get()
    run.key_id = key_hash[: api_key.ID_LENGTH]
    record = _look_up(key_hash)
    if record is None:
        raise Unauthorized
    if "revoked" in record or ("expires" in record and time.time() >= record["expires"]["N"]):
        raise Unauthorized
    run.key_label = record["label"]
    return key_hash


def _look_up(key_hash: str) -> ApiKey | None:
    """Find a key's record in the caches or the store; None if there is none."""
    entry = _known_keys.get(key_hash) or _unknown_keys.get(key_hash)
    if entry is None:
        # The minute begins before the store is asked: it may answer with what was true then.
        now = time.time()
        entry = now, _read(key_hash)
        (_unknown_keys if entry[1] is None else _known_keys).put(key_hash, entry)
    return entry[1]


def _read(key_hash: str) -> ApiKey | None:
    """Read a key's record from the store; None if there is none.

    Raises:
        StoreUnavailable: The key store does not answer, or its response cannot be read.
        ClientError: The key store refuses the request: the service is misconfigured.
    """
    try:
        return dynamodb.read(
            dynamodb.client.get_item,
            _ITEM_RESPONSE,
            TableName=settings.API_KEYS_TABLE,
            Key={"hash": {"S": key_hash}},
            ConsistentRead=True,
        ).get("Item")
    except ValueError as error:
        # A response that cannot be read says nothing about the key: no 401, and nothing to cache.
        raise StoreUnavailable("the record of the key cannot be read") from error
