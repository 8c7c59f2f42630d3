"""Authenticates callers by the API key in the Authorization header (RFC 6750)."""

from __future__ import annotations

import re
import time
from math import inf
from typing import TYPE_CHECKING

from animal_store import api_key, dynamodb, settings
from animal_store.dynamodb import StoreUnavailable
from animal_store.request import Caller
from animal_store.validators import Validator

if TYPE_CHECKING:
    from animal_store.models import ApiKey, ApiKeyItemResponse

_BEARER = re.compile(r"bearer +(\S+) *", re.IGNORECASE | re.ASCII)

_API_KEY_ITEM_RESPONSE: Validator[ApiKeyItemResponse] = Validator("ApiKeyItemResponse")
_CACHE_SECONDS = 60
_CACHE_ENTRIES = 1024


class Unauthorized(Exception):
    """The API key is missing or not valid.

    Args:
        key_id: The id of the key; None unless the request has one well-formed key.
    """

    def __init__(self, key_id: str | None = None) -> None:
        self.key_id = key_id


_Cache = dict[str, "tuple[float, ApiKey | None]"]
"""Maps a key's hash to the time of its look-up and the key's record (None if unknown)."""

# Two caches, so that a flood of unknown keys can't push out the known ones.
_known_keys: _Cache = {}
_unknown_keys: _Cache = {}


def authenticate(authorization: list[str]) -> Caller:
    """Return who sent a request.

    Args:
        authorization: Every value of the request's Authorization header.

    Raises:
        Unauthorized: The request has no API key or several, or its key is malformed, unknown,
            expired, revoked, or valid for too long (a check key).
        StoreUnavailable: The key store does not answer, or has an invalid record.
    """
    match = _BEARER.fullmatch(authorization[0]) if len(authorization) == 1 else None
    if match is None or not api_key.is_well_formed(match[1]):
        raise Unauthorized
    key_hash = api_key.digest(match[1])
    key_id = key_hash[: api_key.ID_LENGTH]
    record = _look_up(key_hash)
    if record is None or not _is_valid(record, key_hash):
        raise Unauthorized(key_id)
    return Caller(key_hash, key_id, record["label"])


def _is_valid(record: ApiKey, key_hash: str) -> bool:
    """Return whether a known key is valid at this moment."""
    if "revoked" in record:
        return False
    seconds_left = record["expires"]["N"] - time.time() if "expires" in record else inf
    # The roles that check a stage may write the records of check keys. So don't trust a record that
    # would make a check key valid for long.
    longest = api_key.CHECK_KEY_SECONDS if key_hash.startswith(api_key.CHECK_HASH_PREFIX) else inf
    return 0 < seconds_left <= longest


def _look_up(key_hash: str) -> ApiKey | None:
    """Return a key's record from the caches or the store; None for an unknown key."""
    # Start an entry's 60 seconds in the cache before the read: a slow read must not add time.
    #
    # Use the wall clock: the monotonic one may stop while Lambda freezes the environment, and a
    # revoked key would then be accepted for longer.
    now = time.time()
    for cache in (_known_keys, _unknown_keys):
        entry = cache.get(key_hash)
        if entry is not None and 0 <= now - entry[0] < _CACHE_SECONDS:
            return entry[1]
    record = _read(key_hash)
    cache = _unknown_keys if record is None else _known_keys
    cache.pop(key_hash, None)
    while len(cache) >= _CACHE_ENTRIES:
        # With `make run`, another thread may already have removed the oldest entry.
        cache.pop(next(iter(cache)), None)
    cache[key_hash] = now, record
    return record


def _read(key_hash: str) -> ApiKey | None:
    """Read a key's record from the store; return None for an unknown key.

    Raises:
        StoreUnavailable: The key store does not answer, or its response cannot be read.
        ClientError: The key store refuses the request, because the service is misconfigured.
    """
    try:
        return dynamodb.read(
            dynamodb.client.get_item,
            _API_KEY_ITEM_RESPONSE,
            TableName=settings.API_KEYS_TABLE,
            Key={"hash": {"S": key_hash}},
            ConsistentRead=True,
        ).get("Item")
    except ValueError as error:
        # Without the record, nobody knows whether the key is valid. So the caller gets 503, and
        # nothing is cached.
        raise StoreUnavailable("the record of the key cannot be read") from error
