"""Look-ups of API keys in the store, and how long they count; forms of keys are contract."""

from typing import Any

import pytest
from animal_store import api_key, auth
from animal_store.auth import Unauthorized

from tests.support import handlers
from tests.support.clock import Clock
from tests.support.fault_injection import (
    THROTTLED,
    Attempt,
    Fault,
    FaultyStore,
    answering,
)
from tools.key_table import EXAMPLE_KEY

UNKNOWN_KEY = api_key.generate("test")

pytestmark = pytest.mark.usefixtures("store")


def is_accepted(key: str) -> bool:
    try:
        auth.authenticate([f"Bearer {key}"])
    except Unauthorized:
        return False
    return True


def test_revoked_key_gets_the_same_response_as_no_key() -> None:
    # Any value counts, even one written by hand.
    handlers.add_key(EXAMPLE_KEY, revoked={"S": "yesterday"})

    refused = handlers.send("list-200")

    assert refused.status == 401
    assert refused == handlers.send("list-200", headers={"Authorization": []})


def test_key_expires_although_it_was_looked_up_before(clock: Clock) -> None:
    handlers.add_key(EXAMPLE_KEY, expires={"N": "1800000050"})
    clock.advance(49)
    assert is_accepted(EXAMPLE_KEY)
    clock.advance(1)

    assert not is_accepted(EXAMPLE_KEY)


@pytest.mark.parametrize(("seconds", "look_ups"), [(57.9, 1), (58, 2), (-6, 3)])
@pytest.mark.parametrize("key", [EXAMPLE_KEY, UNKNOWN_KEY], ids=["known", "unknown"])
def test_look_up_counts_for_60_seconds_from_before_it(
    seconds: float, look_ups: int, key: str, clock: Clock, store: FaultyStore
) -> None:
    """So issue and revocation take effect within that time."""

    def two_seconds_late(attempt: Attempt) -> Any:
        clock.advance(2)
        return attempt.carry_out()

    store.fail("GetItem", two_seconds_late)
    before = is_accepted(key)
    for _ in range(2):
        clock.advance(seconds / 2)
        assert is_accepted(key) is before

    assert len(store.calls) == look_ups


def test_flood_of_unknown_keys_drops_the_oldest_and_no_known_one(
    store: FaultyStore,
) -> None:
    flood = [api_key.generate("test") for _ in range(1025)]
    for key in (EXAMPLE_KEY, *flood):
        is_accepted(key)
    store.calls.clear()

    assert is_accepted(EXAMPLE_KEY)
    assert not is_accepted(flood[1])
    assert store.calls == []

    assert not is_accepted(flood[0])
    assert len(store.calls) == 1


@pytest.mark.parametrize(
    "fault",
    [
        THROTTLED,
        answering(200, b"[]"),
        answering(200, b'{"Item": {"hash": {"S": "00"}}}'),
        answering(200, b'{"Item": {"label": {"S": "x"}, "expires": {"S": "1"}}}'),
    ],
    ids=["throttled", "list", "no label", "no time"],
)
def test_failure_of_the_key_store_is_neither_access_nor_refusal_and_is_forgotten(
    fault: Fault, clock: Clock, store: FaultyStore
) -> None:
    assert is_accepted(EXAMPLE_KEY)
    clock.advance(60)
    store.fail("GetItem", fault, fault, fault)

    assert handlers.send("list-200").status == 503

    store.faults.clear()
    assert is_accepted(EXAMPLE_KEY)
