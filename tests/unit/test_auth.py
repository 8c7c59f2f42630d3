"""Who is let in, who is not, and how often the key store is asked."""

import math
from typing import TYPE_CHECKING, Any

import pytest
from animal_store import api_key as api_keys
from animal_store import auth, dynamodb
from animal_store.errors import ServiceUnavailable, Unauthorized
from botocore.exceptions import ClientError

from tests.fault_injection import DENIED, THROTTLED, Attempt, Fault, Wire, answering
from tests.functions import add_key
from tests.unit.conftest import Clock

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

UNKNOWN = api_keys.generate("test")


def bearer(key: str) -> list[str]:
    return [f"Bearer {key}"]


def is_refused(authorization: list[str], key_id: str | None = None) -> bool:
    """Tell that there is no access, and no word about why; the log gets the id of a key that was valid once."""
    with pytest.raises(Unauthorized, match=r"^Missing or invalid API key\.$") as raised:
        auth.authenticate(authorization)
    return raised.value.key_id == key_id


def id_of(key: str) -> str:
    return api_keys.digest(key)[:12]


@pytest.fixture(autouse=True)
def endless_budget(budget: dynamodb.Budget) -> None:
    """Let minutes pass in one test."""
    budget.deadline = math.inf


def test_valid_key_tells_who_calls(api_key: str, wire: Wire) -> None:
    caller = auth.authenticate(bearer(api_key))

    assert caller == auth.Caller(api_keys.digest(api_key), "tests")
    assert caller.key_id == id_of(api_key)
    ((operation, parameters),) = wire.calls
    assert (operation, parameters["ConsistentRead"]) == ("GetItem", True)
    assert parameters["Key"] == {"hash": {"S": api_keys.digest(api_key)}}
    assert api_key not in str(parameters)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        ["Bearer {}"] * 2,
        *([form] for form in ("", "{}", "Bearer\t{}", "Bearer {}\n", " Bearer {}", "Bearer {}x", "Bearer\u00a0{}")),
    ],
)
def test_any_other_header_is_refused_without_asking_the_store(headers: list[str], api_key: str, wire: Wire) -> None:
    assert is_refused([header.replace("{}", api_key) for header in headers])
    assert wire.sent == []


@pytest.mark.parametrize(("seconds", "valid"), [(1, True), (0, False), (-1, False)])
@pytest.mark.usefixtures("wire")
def test_key_is_valid_until_the_second_at_which_it_expires(
    seconds: int, valid: bool, api_key: str, tables: "DynamoDBClient", clock: Clock
) -> None:
    add_key(tables, api_key, expires={"N": str(int(clock.wall) + seconds)})

    if valid:
        assert auth.authenticate(bearer(api_key)).label == "tests"
    else:
        assert is_refused(bearer(api_key), id_of(api_key))


@pytest.mark.parametrize("revoked", [{"N": "0"}, {"N": "9999999999"}, {"S": "yesterday"}])
@pytest.mark.usefixtures("wire")
def test_revoked_key_is_refused_whatever_is_written_there(
    revoked: dict[str, str], api_key: str, tables: "DynamoDBClient"
) -> None:
    add_key(tables, api_key, revoked=revoked)

    assert is_refused(bearer(api_key), id_of(api_key))


# -- the cache ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
def test_key_is_looked_up_once_in_60_seconds(known: bool, api_key: str, wire: Wire, clock: Clock) -> None:
    def ask() -> Any:
        return auth.authenticate(bearer(api_key)) if known else is_refused(bearer(UNKNOWN))

    for passed, look_ups in ((0, 1), (59.9, 1), (0.1, 2)):
        clock.advance(passed)
        assert ask()
        assert len(wire.sent) == look_ups


def test_key_that_expires_while_it_is_cached_is_refused_at_once(
    api_key: str, tables: "DynamoDBClient", wire: Wire, clock: Clock
) -> None:
    add_key(tables, api_key, expires={"N": str(int(clock.wall) + 10)})
    auth.authenticate(bearer(api_key))

    clock.advance(10)

    assert is_refused(bearer(api_key), id_of(api_key))
    assert len(wire.sent) == 1


@pytest.mark.usefixtures("wire")
def test_revocation_takes_effect_within_60_seconds(api_key: str, tables: "DynamoDBClient", clock: Clock) -> None:
    auth.authenticate(bearer(api_key))
    add_key(tables, api_key, revoked={"N": str(int(clock.wall))})

    clock.advance(60)

    assert is_refused(bearer(api_key), id_of(api_key))


def test_60_seconds_count_from_before_the_look_up(api_key: str, wire: Wire, clock: Clock) -> None:
    def slow(attempt: Attempt) -> Any:
        clock.advance(2)
        return attempt.carry_out()

    wire.fail("GetItem", slow)
    auth.authenticate(bearer(api_key))

    clock.advance(58)
    auth.authenticate(bearer(api_key))

    assert len(wire.sent) == 2


@pytest.mark.usefixtures("wire")
def test_key_issued_while_its_absence_is_cached_works_after_60_seconds(tables: "DynamoDBClient", clock: Clock) -> None:
    assert is_refused(bearer(UNKNOWN))
    add_key(tables, UNKNOWN)

    clock.advance(60)

    assert auth.authenticate(bearer(UNKNOWN)).label == "tests"


def test_clock_that_goes_backwards_ends_the_cache(api_key: str, wire: Wire, clock: Clock) -> None:
    auth.authenticate(bearer(api_key))

    clock.wall -= 3600
    auth.authenticate(bearer(api_key))

    assert len(wire.sent) == 2


def test_flood_of_unknown_keys_is_bounded_and_leaves_known_ones_cached(
    api_key: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "_CACHE_ENTRIES", 8)
    auth.authenticate(bearer(api_key))

    flood = [api_keys.generate("live") for _ in range(20)]
    assert all(is_refused(bearer(key)) for key in flood)

    assert len(wire.sent) == 21
    assert list(auth._unknown._entries) == [api_keys.digest(key) for key in flood[-8:]]
    auth.authenticate(bearer(api_key))
    assert len(wire.sent) == 21


@pytest.mark.usefixtures("wire")
def test_known_keys_are_bounded_and_the_one_looked_up_longest_ago_goes(
    tables: "DynamoDBClient", monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(auth, "_CACHE_ENTRIES", 3)
    first, second, third, fourth = keys = [api_keys.generate("live") for _ in range(4)]
    for key in keys:
        add_key(tables, key)
    auth.authenticate(bearer(first))
    auth.authenticate(bearer(second))
    clock.advance(60)

    for key in (first, third, fourth):
        auth.authenticate(bearer(key))

    assert list(auth._known._entries) == [api_keys.digest(key) for key in (first, third, fourth)]


# -- the key store fails -----------------------------------------------------------------------------------------------

ITEM = b'{"Item": {"label": {"S": "x"}, %s}}'


@pytest.mark.parametrize(
    "fault",
    [
        THROTTLED,
        answering(200, b"[]"),
        answering(200, b'{"Item": {"hash": {"S": "00"}}}'),
        answering(200, ITEM % b'"expires": {"N": "soon"}'),
        answering(200, ITEM % b'"expires": {"S": "2020-01-01"}'),
    ],
)
def test_failure_of_the_key_store_is_neither_access_nor_refusal_and_is_forgotten(
    fault: Fault, api_key: str, wire: Wire
) -> None:
    for key in (UNKNOWN, api_key):
        wire.fail("GetItem", fault, fault, fault)
        with pytest.raises(ServiceUnavailable):
            auth.authenticate(bearer(key))
        wire.heal()

    assert auth.authenticate(bearer(api_key)).label == "tests"
    assert is_refused(bearer(UNKNOWN))


def test_key_store_that_refuses_to_answer_is_no_matter_of_retrying(api_key: str, wire: Wire) -> None:
    wire.fail("GetItem", DENIED)

    with pytest.raises(ClientError):
        auth.authenticate(bearer(api_key))

    assert auth.authenticate(bearer(api_key)).label == "tests"
