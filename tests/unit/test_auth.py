"""Look-ups of API keys: results, caching and failures."""

from dataclasses import replace
from typing import Any

import pytest
from animal_store import api_key

from tests.support import handlers
from tests.support.clock import Clock
from tests.support.fault_injection import THROTTLED, Attempt, FaultyStore
from tests.support.handlers import EXAMPLE_RECORD
from tools.key_table import EXAMPLE_KEY, generate

pytestmark = pytest.mark.usefixtures("store")


def is_accepted(key: str) -> bool:
    """Return whether a list request with this key succeeds; otherwise it gets 401."""
    response = handlers.send("list-200", {"Authorization": [f"Bearer {key}"]})
    assert response.status in {200, 401}
    return response.status == 200


def count_key_lookups(store: FaultyStore) -> int:
    """Count the reads of the key table."""
    return [operation for operation, _ in store.calls].count("GetItem")


def test_revoked_key_gets_401_and_its_id_is_logged() -> None:
    # Any value revokes the key, even a text that an operator wrote by hand.
    record = replace(EXAMPLE_RECORD, revoked="yesterday")  # type: ignore[arg-type]
    handlers.service().keys().put(record)

    response = handlers.send("get-200")

    (line,) = response.lines
    assert response.status == 401
    assert response == handlers.send("get-200", headers={"Authorization": []})
    assert line["KeyId"] == api_key.digest(EXAMPLE_KEY)[:12]
    assert line.keys().isdisjoint({"KeyLabel", "DeprecatedCalls", "Version"})


def test_cached_key_is_refused_once_it_expires(clock: Clock) -> None:
    handlers.service().keys().put(replace(EXAMPLE_RECORD, expires=int(clock.wall) + 50))
    clock.advance(49)
    assert is_accepted(EXAMPLE_KEY)
    clock.advance(1)

    assert not is_accepted(EXAMPLE_KEY)


@pytest.mark.parametrize(
    ("lifetime_s", "expected"), [(7200, True), (7201, False), (None, False)]
)
def test_contract_suite_key_is_refused_if_valid_too_long(
    lifetime_s: int | None, expected: bool, clock: Clock
) -> None:
    keys = handlers.service().keys()
    expires = lifetime_s and int(clock.wall) + lifetime_s
    key, _ = keys.issue("suite", "test", expires, is_check=True)

    assert is_accepted(key) == expected


@pytest.mark.parametrize(("age_s", "lookups"), [(59.9, 1), (60, 2), (-1, 2)])
def test_lookup_of_a_key_is_cached_for_60_s(
    age_s: float, lookups: int, clock: Clock, store: FaultyStore
) -> None:
    def answer_after_two_seconds(attempt: Attempt) -> Any:
        clock.advance(2)
        return attempt.send_to_store()

    store.fail("GetItem", answer_after_two_seconds)
    start = clock.wall
    is_accepted(EXAMPLE_KEY)
    clock.wall = start + 30
    is_accepted(EXAMPLE_KEY)
    clock.wall = start + age_s

    assert is_accepted(EXAMPLE_KEY)
    assert count_key_lookups(store) == lookups


def test_flood_of_unknown_keys_evicts_no_known_key(store: FaultyStore) -> None:
    flood = [generate("test") for _ in range(1025)]  # one more than the cache holds
    for key in (EXAMPLE_KEY, *flood):
        is_accepted(key)
    store.calls.clear()

    assert is_accepted(EXAMPLE_KEY)
    assert not is_accepted(flood[1])
    assert count_key_lookups(store) == 0

    assert not is_accepted(flood[0])
    assert count_key_lookups(store) == 1


def test_failed_lookup_of_a_key_gets_503_and_is_not_cached(
    clock: Clock, store: FaultyStore
) -> None:
    assert is_accepted(EXAMPLE_KEY)
    clock.advance(60)
    store.fail("GetItem", THROTTLED, THROTTLED, THROTTLED)

    assert handlers.send("list-200").status == 503
    assert is_accepted(EXAMPLE_KEY)
