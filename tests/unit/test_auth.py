"""Who is let in, who is not, and how often the key store is asked."""

from typing import Any

import pytest
from animal_store import api_key, auth, dynamodb
from animal_store.errors import ServiceUnavailable, Unauthorized
from botocore.exceptions import ClientError

from tests.support import handlers
from tests.support.clock import Clock
from tests.support.fault_injection import (
    DENIED,
    THROTTLED,
    Attempt,
    Fault,
    FaultyStore,
    answering,
)
from tools.local.events import EXAMPLE_KEY

KEY_ID = api_key.digest(EXAMPLE_KEY)[:12]
VALID = f"Bearer {EXAMPLE_KEY}"
UNKNOWN = [api_key.generate("test") for _ in range(3)]

pytestmark = pytest.mark.usefixtures("store")


def is_accepted(key: str) -> bool:
    try:
        auth.authenticate([f"Bearer {key}"])
    except Unauthorized:
        return False
    return True


def test_valid_key_is_looked_up_by_its_hash(store: FaultyStore) -> None:
    caller = auth.authenticate([VALID])

    assert caller == auth.Caller(api_key.digest(EXAMPLE_KEY), "tests")
    request = {
        "TableName": handlers.API_KEYS,
        "Key": {"hash": {"S": api_key.digest(EXAMPLE_KEY)}},
        "ConsistentRead": True,
    }
    assert store.calls == [("GetItem", request)]


@pytest.mark.parametrize(
    "values", [[], [VALID, VALID], [EXAMPLE_KEY], [f"{VALID[:-1]}x"]]
)
def test_header_without_exactly_one_key_is_refused_without_asking_the_store(
    values: list[str], store: FaultyStore
) -> None:
    with pytest.raises(Unauthorized):
        auth.authenticate(values)

    assert store.sent == []


@pytest.mark.parametrize("why", ["revoked", "expires"])
def test_key_that_was_valid_gets_the_same_response_as_no_key(why: str) -> None:
    handlers.add_key(EXAMPLE_KEY, **{why: {"N": "1"}})

    refused = handlers.send("create-201")

    assert refused.status == 401
    assert refused == handlers.send("create-201", headers={"Authorization": []})


@pytest.mark.parametrize("looked_up_before", [True, False])
def test_key_is_refused_from_the_second_at_which_it_expires(
    looked_up_before: bool, clock: Clock, store: FaultyStore
) -> None:
    expires = str(int(clock.wall) + 50)
    handlers.add_key(EXAMPLE_KEY, expires={"N": expires})
    clock.advance(49)
    assert not looked_up_before or is_accepted(EXAMPLE_KEY)
    clock.advance(1)

    with pytest.raises(Unauthorized):
        auth.authenticate([VALID])

    assert dynamodb.invocation.get().key_id == KEY_ID
    assert store.sent == ["GetItem"]


@pytest.mark.parametrize("revoked", [{"N": "9999999999"}, {"S": "yesterday"}])
def test_revoked_key_is_refused_whatever_is_written_there(
    revoked: dict[str, str],
) -> None:
    handlers.add_key(EXAMPLE_KEY, revoked=revoked)

    with pytest.raises(Unauthorized):
        auth.authenticate([VALID])

    assert dynamodb.invocation.get().key_id == KEY_ID


@pytest.mark.parametrize(("seconds", "look_ups"), [(57.9, 1), (58, 2), (-3, 2)])
@pytest.mark.parametrize("key", [EXAMPLE_KEY, UNKNOWN[0]], ids=["known", "unknown"])
def test_look_up_counts_for_60_seconds_from_before_it(
    seconds: float, look_ups: int, key: str, clock: Clock, store: FaultyStore
) -> None:
    """So issue and revocation take effect within that time."""

    def two_seconds_late(attempt: Attempt) -> Any:
        clock.advance(2)
        return attempt.carry_out()

    store.fail("GetItem", two_seconds_late)
    before = is_accepted(key)
    clock.advance(seconds)

    assert is_accepted(key) is before
    assert len(store.sent) == look_ups


def test_full_cache_drops_what_was_looked_up_longest_ago_and_no_known_key(
    clock: Clock, store: FaultyStore
) -> None:
    assert is_accepted(EXAMPLE_KEY)
    nothing = answering(200, b"{}")
    first, second, *others = [api_key.generate("test") for _ in range(1025)]
    for key in (first, second):
        store.fail("GetItem", nothing)
        is_accepted(key)
    clock.advance(60)  # so that these are looked up again, in the other order
    assert is_accepted(EXAMPLE_KEY)
    for key in (second, first, *others):
        store.fail("GetItem", nothing)
        is_accepted(key)
    asked = len(store.sent)

    for key in (EXAMPLE_KEY, first, *others):
        is_accepted(key)
    assert len(store.sent) == asked

    is_accepted(second)
    assert len(store.sent) == asked + 1


@pytest.mark.parametrize("key", [EXAMPLE_KEY, UNKNOWN[0]], ids=["known", "unknown"])
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (DENIED, ClientError),
        (THROTTLED, ServiceUnavailable),
        (answering(200, b"[]"), ServiceUnavailable),
        (answering(200, b'{"Item": {"hash": {"S": "00"}}}'), ServiceUnavailable),
        (
            answering(200, b'{"Item": {"label": {"S": "x"}, "expires": {"S": "1"}}}'),
            ServiceUnavailable,
        ),
    ],
    ids=["denied", "throttled", "list", "no label", "no time"],
)
def test_failure_of_the_key_store_is_neither_access_nor_refusal_and_is_forgotten(
    fault: Fault, expected: type[Exception], key: str, store: FaultyStore
) -> None:
    store.fail("GetItem", fault, fault, fault)

    with pytest.raises(expected):
        is_accepted(key)

    store.faults.clear()
    assert is_accepted(key) is (key == EXAMPLE_KEY)


def test_key_that_was_valid_a_minute_ago_does_not_open_while_the_key_store_is_down(
    clock: Clock, store: FaultyStore
) -> None:
    assert is_accepted(EXAMPLE_KEY)
    clock.advance(60)
    store.fail("GetItem", THROTTLED, THROTTLED, THROTTLED)

    with pytest.raises(ServiceUnavailable):
        is_accepted(EXAMPLE_KEY)
