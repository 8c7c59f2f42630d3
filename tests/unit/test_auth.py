"""Who is let in, who is not, and how often the key store is asked."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from animal_store import api_key as api_keys
from animal_store import auth, dynamodb, settings
from animal_store.errors import ServiceUnavailable, Unauthorized
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from tests.unit.conftest import Clock
from tests.unit.fault_injection import DENIED, SERVER_ERROR, THROTTLED, Fault, Wire, answer, error, lost_request

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

UNKNOWN = "animal_test_AnExampleKeyThatOpensNothingHere0u1vgN"


def bearer(key: str) -> list[str]:
    return [f"Bearer {key}"]


def is_refused(authorization: list[str], key_id: str | None = None) -> bool:
    """Tell that there is no entry, and no word about why; the log gets the id of a key that was valid once."""
    with pytest.raises(Unauthorized, match=r"^Missing or invalid API key\.$") as raised:
        auth.authenticate(authorization)
    return raised.value.key_id == key_id


def id_of(key: str) -> str:
    return api_keys.digest(key)[:12]


@pytest.fixture(autouse=True)
def endless_budget(budget: dynamodb.Budget) -> None:
    """Let minutes pass in one test."""
    budget.deadline = math.inf


@pytest.fixture
def change_key(tables: "DynamoDBClient", api_key: str) -> Callable[..., None]:
    """Give what sets numbers of the key's item, as the key administration does."""

    def change(**numbers: int) -> None:
        for name, number in numbers.items():
            tables.update_item(
                TableName=settings.API_KEYS_TABLE,
                Key={"hash": {"S": api_keys.digest(api_key)}},
                UpdateExpression="SET #name = :number",
                ExpressionAttributeNames={"#name": name},
                ExpressionAttributeValues={":number": {"N": str(number)}},
            )

    return change


# -- the header --------------------------------------------------------------------------------------------------------


def test_valid_key_tells_who_calls(api_key: str) -> None:
    caller = auth.authenticate(bearer(api_key))

    assert caller == auth.Caller(api_keys.digest(api_key), "unit tests")
    assert caller.key_id == id_of(api_key)


@pytest.mark.parametrize("form", ["bearer {}", "BEARER {}", "Bearer   {}", "Bearer {} ", "bEaReR  {}  "])
def test_scheme_in_any_case_and_more_spaces_are_taken(form: str, api_key: str) -> None:
    assert auth.authenticate([form.format(api_key)]).label == "unit tests"


@pytest.mark.parametrize(
    "form",
    [
        "",
        " ",
        "{}",
        "Bearer",
        "Bearer ",
        "Bearer{}",
        "Bearer\t{}",
        "Bearer {}\t",
        "Bearer {}\n",
        " Bearer {}",
        "Bearer {},",
        "Bearer {}, Bearer {}",
        "Bearer {} {}",
        "Bearer {}x",
        'Bearer "{}"',
        "Bearer: {}",
        "Basic {}",
        "Token {}",
        "Bearer\u00a0{}",
        "Bearer {}\u00a0",
    ],
)
def test_any_other_header_is_refused_without_asking_the_store(form: str, api_key: str, wire: Wire) -> None:
    assert is_refused([form.replace("{}", api_key)])
    assert wire.sent == []


def test_no_header_is_refused() -> None:
    assert is_refused([])


def test_header_given_twice_is_refused(api_key: str) -> None:
    assert is_refused(bearer(api_key) * 2)


def test_malformed_key_is_refused_without_asking_the_store(api_key: str, wire: Wire) -> None:
    typo = api_key[:-1] + ("a" if api_key[-1] != "a" else "b")

    assert is_refused(bearer(typo))
    assert wire.sent == []


# -- the key -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("tables")
def test_unknown_key_is_refused() -> None:
    assert is_refused(bearer(UNKNOWN))


def test_key_is_looked_up_by_its_hash_alone(api_key: str, wire: Wire) -> None:
    auth.authenticate(bearer(api_key))

    ((operation, parameters),) = wire.parameters
    assert operation == "GetItem"
    assert parameters["Key"] == {"hash": {"S": api_keys.digest(api_key)}}
    assert parameters["ConsistentRead"] is True
    assert api_key not in str(parameters)


@pytest.mark.parametrize(("seconds", "valid"), [(1, True), (0, False), (-1, False)])
def test_key_is_valid_until_the_second_at_which_it_expires(
    seconds: int, valid: bool, api_key: str, change_key: Callable[..., None], clock: Clock
) -> None:
    change_key(expires=int(clock.wall) + seconds)

    if valid:
        assert auth.authenticate(bearer(api_key)).label == "unit tests"
    else:
        assert is_refused(bearer(api_key), id_of(api_key))


@pytest.mark.parametrize("revoked", [0, 1_764_892_800, 9_999_999_999])
def test_revoked_key_is_refused_whenever_that_was(revoked: int, api_key: str, change_key: Callable[..., None]) -> None:
    change_key(revoked=revoked)

    assert is_refused(bearer(api_key), id_of(api_key))


def test_key_that_was_revoked_by_hand_is_refused(tables: "DynamoDBClient", api_key: str) -> None:
    tables.put_item(
        TableName=settings.API_KEYS_TABLE,
        Item={"hash": {"S": api_keys.digest(api_key)}, "label": {"S": "x"}, "revoked": {"S": "yesterday"}},
    )

    assert is_refused(bearer(api_key), id_of(api_key))


# -- the cache ---------------------------------------------------------------------------------------------------------


def test_known_key_is_looked_up_once_in_60_seconds(api_key: str, wire: Wire, clock: Clock) -> None:
    auth.authenticate(bearer(api_key))
    clock.advance(59.9)
    auth.authenticate(bearer(api_key))
    assert len(wire.sent) == 1

    clock.advance(0.1)
    auth.authenticate(bearer(api_key))

    assert len(wire.sent) == 2


@pytest.mark.usefixtures("tables")
def test_unknown_key_is_looked_up_once_in_60_seconds(wire: Wire, clock: Clock) -> None:
    assert is_refused(bearer(UNKNOWN))
    clock.advance(59.9)
    assert is_refused(bearer(UNKNOWN))
    assert len(wire.sent) == 1

    clock.advance(0.1)
    assert is_refused(bearer(UNKNOWN))

    assert len(wire.sent) == 2


def test_key_that_expires_while_it_is_cached_is_refused_at_once(
    api_key: str, change_key: Callable[..., None], wire: Wire, clock: Clock
) -> None:
    change_key(expires=int(clock.wall) + 10)
    auth.authenticate(bearer(api_key))

    clock.advance(10)

    assert is_refused(bearer(api_key), id_of(api_key))
    assert len(wire.sent) == 1


def test_revocation_takes_effect_within_60_seconds(api_key: str, change_key: Callable[..., None], clock: Clock) -> None:
    auth.authenticate(bearer(api_key))
    change_key(revoked=int(clock.wall))

    clock.advance(60)

    assert is_refused(bearer(api_key), id_of(api_key))


def test_time_of_the_look_up_counts_from_before_it(api_key: str, wire: Wire, clock: Clock) -> None:
    def slow(carry_out: Callable[[], AWSResponse]) -> AWSResponse:
        response = carry_out()
        clock.advance(2)
        return response

    wire.fail("GetItem", slow)
    auth.authenticate(bearer(api_key))

    clock.advance(58)
    auth.authenticate(bearer(api_key))

    assert len(wire.sent) == 2


def test_key_issued_while_its_absence_is_cached_works_after_60_seconds(tables: "DynamoDBClient", clock: Clock) -> None:
    assert is_refused(bearer(UNKNOWN))
    tables.put_item(
        TableName=settings.API_KEYS_TABLE, Item={"hash": {"S": api_keys.digest(UNKNOWN)}, "label": {"S": "late"}}
    )

    clock.advance(60)

    assert auth.authenticate(bearer(UNKNOWN)).label == "late"


def test_clock_that_goes_backwards_ends_the_cache(api_key: str, wire: Wire, clock: Clock) -> None:
    auth.authenticate(bearer(api_key))

    clock.wall -= 3600
    auth.authenticate(bearer(api_key))

    assert len(wire.sent) == 2


@pytest.mark.usefixtures("tables")
def test_flood_of_unknown_keys_is_bounded_and_leaves_known_ones_cached(
    api_key: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "_CACHE_ENTRIES", 8)
    auth.authenticate(bearer(api_key))

    flood = [api_keys.generate("live") for _ in range(50)]
    for key in flood:
        assert is_refused(bearer(key))

    assert len(wire.sent) == 51
    assert list(auth._unknown._entries) == [api_keys.digest(key) for key in flood[-8:]]
    auth.authenticate(bearer(api_key))
    assert len(wire.sent) == 51


def test_known_keys_are_bounded_too(tables: "DynamoDBClient", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "_CACHE_ENTRIES", 2)
    keys = [api_keys.generate("live") for _ in range(3)]
    for key in keys:
        item = {"hash": {"S": api_keys.digest(key)}, "label": {"S": "many"}}
        tables.put_item(TableName=settings.API_KEYS_TABLE, Item=item)
        auth.authenticate(bearer(key))

    assert list(auth._known._entries) == [api_keys.digest(key) for key in keys[1:]]


def test_key_that_is_looked_up_again_is_no_longer_the_oldest(
    tables: "DynamoDBClient", monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(auth, "_CACHE_ENTRIES", 3)
    first, second, third, fourth = keys = [api_keys.generate("live") for _ in range(4)]
    for key in keys:
        item = {"hash": {"S": api_keys.digest(key)}, "label": {"S": "many"}}
        tables.put_item(TableName=settings.API_KEYS_TABLE, Item=item)
    auth.authenticate(bearer(first))
    auth.authenticate(bearer(second))
    clock.advance(60)
    auth.authenticate(bearer(first))

    auth.authenticate(bearer(third))
    auth.authenticate(bearer(fourth))

    assert list(auth._known._entries) == [api_keys.digest(key) for key in (first, third, fourth)]


# -- the key store fails -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        lost_request,
        THROTTLED,
        SERVER_ERROR,
        answer(200, b'{"Item": {"label": {"S"'),
        answer(200, b"\xff\xfe"),
        answer(200, b""),
        answer(200, b"[]"),
        answer(200, b'{"Item": {"hash": {"S": "00"}}}'),
        answer(200, b'{"Item": {"label": {"S": "x"}, "expires": {"N": "soon"}}}'),
        answer(200, b'{"Item": {"label": {"S": "x"}, "expires": {"S": "2020-01-01"}}}'),
    ],
)
def test_failure_of_the_key_store_is_neither_entry_nor_refusal_and_is_forgotten(
    fault: Fault, api_key: str, wire: Wire
) -> None:
    wire.fail("GetItem", fault, fault, fault)

    with pytest.raises(ServiceUnavailable):
        auth.authenticate(bearer(api_key))

    wire.heal()
    assert auth.authenticate(bearer(api_key)).label == "unit tests"


@pytest.mark.parametrize("fault", [DENIED, error(400, "ResourceNotFoundException"), error(400, "ValidationException")])
def test_key_store_that_refuses_to_answer_is_no_matter_of_retrying(fault: Fault, api_key: str, wire: Wire) -> None:
    wire.fail("GetItem", fault)

    with pytest.raises(ClientError):
        auth.authenticate(bearer(api_key))

    wire.heal()
    assert auth.authenticate(bearer(api_key)).label == "unit tests"


def test_cached_key_outlives_a_failing_key_store(api_key: str, wire: Wire) -> None:
    auth.authenticate(bearer(api_key))
    wire.fail("GetItem", DENIED)

    assert auth.authenticate(bearer(api_key)).label == "unit tests"
