"""Who is let in, who is not, and how often the key store is asked."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from animal_store import api_key, auth, dynamodb
from animal_store.errors import ServiceUnavailable, Unauthorized
from botocore.exceptions import ClientError

from tests.support import handlers
from tests.support.example_key import EXAMPLE_KEY
from tests.support.fault_injection import DENIED, THROTTLED, Attempt, Fault, Wire, answering
from tests.support.requests import Clock

pytestmark = pytest.mark.usefixtures("wire", "clock")

UNKNOWN = api_key.generate("test")
KEY_ID = api_key.digest(EXAMPLE_KEY)[:12]


def authenticate(key: str = EXAMPLE_KEY, form: str = "Bearer {}", times: int = 1) -> auth.Caller:
    dynamodb.invocation.set(dynamodb.Invocation(math.inf))
    return auth.authenticate([form.replace("{}", key)] * times)


def is_refused(key: str = EXAMPLE_KEY, key_id: str | None = None, **headers: Any) -> bool:
    """Tell that there is no access, and no word about why; the log gets the id of a key that was valid once."""
    with pytest.raises(Unauthorized, match=r"^Missing or invalid API key\.$") as raised:
        authenticate(key, **headers)
    return raised.value.key_id == key_id


def test_valid_key_tells_who_calls_by_its_hash_alone(wire: Wire) -> None:
    assert authenticate() == auth.Caller(api_key.digest(EXAMPLE_KEY), "tests")

    ((operation, parameters),) = wire.calls
    assert (operation, parameters["ConsistentRead"]) == ("GetItem", True)
    assert parameters["Key"] == {"hash": {"S": api_key.digest(EXAMPLE_KEY)}}


@pytest.mark.parametrize(
    "headers", [{"times": 0}, {"times": 2}, {"form": "{}"}, {"key": f"{EXAMPLE_KEY[:-1]}x"}]
)
def test_any_other_header_is_refused_without_asking_the_store(
    headers: dict[str, Any], wire: Wire
) -> None:
    assert is_refused(**headers)
    assert wire.sent == []


def test_key_is_valid_until_the_second_at_which_it_expires_in_the_cache_too(
    clock: Clock, wire: Wire, fresh: Callable[[], None]
) -> None:
    handlers.add_key(
        handlers.client(wire.database), EXAMPLE_KEY, expires={"N": str(int(clock.wall) + 50)}
    )
    authenticate()
    clock.advance(49)
    assert authenticate().key_id == KEY_ID

    clock.advance(1)

    assert is_refused(key_id=KEY_ID)
    assert len(wire.sent) == 1
    fresh()
    assert is_refused(key_id=KEY_ID)


@pytest.mark.parametrize("revoked", [{"N": "0"}, {"N": "9999999999"}, {"S": "yesterday"}])
def test_revoked_key_is_refused_whatever_is_written_there(
    revoked: dict[str, str], wire: Wire
) -> None:
    handlers.add_key(handlers.client(wire.database), EXAMPLE_KEY, revoked=revoked)
    assert is_refused(key_id=KEY_ID)


@pytest.mark.parametrize("known", [True, False])
def test_key_is_looked_up_once_in_60_seconds_from_before_the_look_up(
    known: bool, wire: Wire, clock: Clock
) -> None:
    """So issue and revocation take effect within that time."""

    def slow(attempt: Attempt) -> Any:
        clock.advance(2)
        return attempt.carry_out()

    wire.fail("GetItem", slow)
    for passed, look_ups in ((0, 1), (57.9, 1), (0.1, 2), (-3600, 3)):
        clock.advance(passed)
        assert authenticate() if known else is_refused(UNKNOWN)
        assert len(wire.sent) == look_ups


def test_caches_are_bounded_and_a_flood_of_unknown_keys_leaves_known_ones(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(auth, "_CACHE_ENTRIES", 3)
    known, flood = ([api_key.generate("live") for _ in range(4)] for _ in range(2))
    for key in known:
        handlers.add_key(handlers.client(wire.database), key)
    for number in (0, 1, 0, 2, 3):
        clock.advance(60)  # so that it is looked up
        authenticate(known[number])
    assert all(is_refused(key) for key in flood)

    # The one that was looked up longest ago goes.
    assert list(auth._known._entries) == [api_key.digest(known[number]) for number in (0, 2, 3)]
    assert list(auth._unknown._entries) == [api_key.digest(key) for key in flood[1:]]


ITEM = b'{"Item": {"label": {"S": "x"}, %s}}'


@pytest.mark.parametrize(
    ("expected", "fault"),
    [
        (ClientError, DENIED),  # the service is set up wrongly: retrying does not help
        (ServiceUnavailable, THROTTLED),
        (ServiceUnavailable, answering(200, b"[]")),
        (ServiceUnavailable, answering(200, b'{"Item": {"hash": {"S": "00"}}}')),
        (ServiceUnavailable, answering(200, ITEM % b'"expires": {"N": "soon"}')),
        (ServiceUnavailable, answering(200, ITEM % b'"expires": {"S": "2020-01-01"}')),
    ],
)
def test_failure_of_the_key_store_is_neither_access_nor_refusal_and_is_forgotten(
    expected: type[Exception], fault: Fault, wire: Wire
) -> None:
    for key in (UNKNOWN, EXAMPLE_KEY):
        wire.fail("GetItem", fault, fault, fault)
        with pytest.raises(expected):
            authenticate(key)
        wire.faults.clear()

    assert authenticate().label == "tests"
    assert is_refused(UNKNOWN)
