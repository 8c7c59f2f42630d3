"""The catalogue: what a creation writes, and what it makes of ids, keys and conflicts that the contract cannot cause.

That each call survives failures, whatever it is, is in test_every_call.py.
"""

import hashlib
from typing import TYPE_CHECKING, Any

import pytest
from animal_store import catalogue, dynamodb
from animal_store.auth import Caller
from animal_store.errors import ServiceUnavailable
from botocore.exceptions import ClientError

from tests import functions
from tests.fault_injection import DENIED, LOST_REQUEST, Wire, error
from tests.functions import ANIMALS
from tests.unit.conftest import Clock

if TYPE_CHECKING:
    from animal_store.models import NewPet
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.usefixtures("wire", "budget")

REX: "NewPet" = {"name": "Rex", "categoryId": 3, "status": "available"}
MIA: "NewPet" = {"name": "Mia", "categoryId": 2**63 - 1}
CALLER = Caller("0123456789abcdef" * 4, "unit tests")
KEY = "key"
DAY = 24 * 60 * 60
keyed = pytest.mark.parametrize("key", [None, KEY])


def stored(tables: "DynamoDBClient", partition: str = "pet") -> list[dict[str, Any]]:
    """Read the items of a partition."""
    return [item for item in functions.items(tables) if item["pk"]["S"].startswith(partition)]


def cancelled(*codes: str) -> Any:
    return error(400, "TransactionCanceledException", CancellationReasons=[{"Code": code} for code in codes])


# -- creating ----------------------------------------------------------------------------------------------------------


@keyed
@pytest.mark.parametrize("faults", [[], [LOST_REQUEST]])
def test_animal_under_the_same_id_is_never_overwritten(
    key: str | None, faults: list[Any], tables: "DynamoDBClient", wire: Wire
) -> None:
    foreign: Any = {"pk": {"S": "pet"}, "id": {"N": "1"}, "name": {"S": "Max"}, "categoryId": {"N": "1"}}
    tables.put_item(TableName=ANIMALS, Item=foreign)
    wire.fail("TransactWriteItems" if key else "PutItem", *faults)

    with pytest.raises(RuntimeError, match=r"^the counter gave id 1, which is taken$"):
        catalogue.create_pet(REX, CALLER, key)

    assert stored(tables) == [foreign]
    assert stored(tables, "idempotency#") == []


def test_tokens_of_two_creations_differ(tables: "DynamoDBClient") -> None:
    catalogue.create_pet(REX, CALLER, None)
    catalogue.create_pet(REX, CALLER, None)

    tokens = {item["token"]["S"] for item in stored(tables)}
    assert len(tokens) == 2
    assert {len(token) for token in tokens} == {32}


@keyed
def test_item_says_who_added_it_when_and_no_response_does(
    key: str | None, tables: "DynamoDBClient", clock: Clock
) -> None:
    creation = catalogue.create_pet(REX, CALLER, key)

    (item,) = stored(tables)
    assert (item["createdBy"], item["createdAt"]) == ({"S": "0123456789ab"}, {"N": str(int(clock.wall))})
    pet = {"id": 1, **REX}
    assert creation.pet == catalogue.get_pet(1) == pet
    assert catalogue.list_pets(20, None, after=0).pets == catalogue.list_pets(20, "available", after=0).pets == [pet]


@pytest.mark.parametrize(
    ("operation", "key"), [("UpdateItem", None), ("PutItem", None), ("UpdateItem", KEY), ("TransactWriteItems", KEY)]
)
def test_refusal_by_the_store_is_told_as_it_is(operation: str, key: str | None, wire: Wire) -> None:
    wire.fail(operation, DENIED)

    with pytest.raises(ClientError, match="AccessDeniedException"):
        catalogue.create_pet(REX, CALLER, key)


# -- creating with an Idempotency-Key ----------------------------------------------------------------------------------


def test_record_says_which_animal_until_when_and_not_the_key(tables: "DynamoDBClient", clock: Clock) -> None:
    catalogue.create_pet(REX, CALLER, "order-17")

    partition = "idempotency#" + hashlib.sha256(f"{CALLER.key_hash}#order-17".encode()).hexdigest()
    fingerprint = hashlib.sha256(b'{"name":"Rex","categoryId":3,"status":"available"}').hexdigest()
    assert stored(tables, "idempotency#") == [
        {
            "pk": {"S": partition},
            "id": {"N": "0"},
            "petId": {"N": "1"},
            "fingerprint": {"S": fingerprint},
            "expires": {"N": str(int(clock.wall) + DAY)},
        }
    ]


def test_key_is_kept_for_a_day(clock: Clock, budget: dynamodb.Budget) -> None:
    catalogue.create_pet(REX, CALLER, KEY)
    budget.deadline += 2 * DAY

    clock.advance(DAY - 1)
    assert catalogue.create_pet(REX, CALLER, KEY).replayed
    clock.advance(1)
    assert catalogue.create_pet(MIA, CALLER, KEY) == ({"id": 3, **MIA}, False)

    assert catalogue.create_pet(MIA, CALLER, KEY) == ({"id": 3, **MIA}, True)


def test_retries_of_a_transaction_carry_one_token(wire: Wire) -> None:
    wire.fail("TransactWriteItems", LOST_REQUEST, LOST_REQUEST)

    catalogue.create_pet(REX, CALLER, KEY)

    tokens = [body["ClientRequestToken"] for body in wire.bodies if "TransactItems" in body]
    assert len(tokens) == 3
    assert len(set(tokens)) == 1


@pytest.mark.parametrize(
    "codes",
    [
        ("TransactionConflict", "None"),
        ("None", "TransactionConflict"),
        ("ThrottlingError", "None"),
        ("None", "ProvisionedThroughputExceeded"),
    ],
)
def test_transaction_that_may_succeed_later_is_tried_again(codes: tuple[str, str], wire: Wire, clock: Clock) -> None:
    wire.fail("TransactWriteItems", *[cancelled(*codes)] * 5)

    assert catalogue.create_pet(REX, CALLER, KEY) == ({"id": 1, **REX}, False)

    assert len(clock.pauses) == 5
    assert all(0 <= pause <= 0.05 * 2**attempt for attempt, pause in enumerate(clock.pauses))


def test_conflict_without_end_is_given_up_at_once_after_six_attempts(
    wire: Wire, tables: "DynamoDBClient", clock: Clock
) -> None:
    wire.fail("TransactWriteItems", *[cancelled("TransactionConflict", "None")] * 9)

    with pytest.raises(ServiceUnavailable):
        catalogue.create_pet(REX, CALLER, KEY)

    assert wire.sent.count("TransactWriteItems") == 6
    assert len(clock.pauses) == 5
    assert stored(tables) == []


@pytest.mark.parametrize("codes", [(), ("ValidationError", "None"), ("None", "ItemCollectionSizeLimitExceeded")])
def test_transaction_cancelled_for_another_reason_is_told_as_it_is(codes: tuple[str, ...], wire: Wire) -> None:
    wire.fail("TransactWriteItems", cancelled(*codes))

    with pytest.raises(ClientError, match="TransactionCanceledException"):
        catalogue.create_pet(REX, CALLER, KEY)

    assert wire.sent.count("TransactWriteItems") == 1


# -- reading -----------------------------------------------------------------------------------------------------------


def test_animal_and_whole_list_are_read_strongly_consistent(wire: Wire) -> None:
    catalogue.get_pet(1)
    catalogue.list_pets(20, None, after=0)

    assert [parameters["ConsistentRead"] for _, parameters in wire.calls] == [True, True]


@pytest.mark.parametrize("status", [None, "sold"])
def test_page_costs_one_query_that_reads_one_animal_more_than_it_shows(status: Any, wire: Wire) -> None:
    for number in range(4):
        catalogue.create_pet({"name": "Rex", "categoryId": 1, "status": "sold" if number else "pending"}, CALLER, None)
    wire.calls.clear()

    page = catalogue.list_pets(2, status, after=1)

    assert ([pet["id"] for pet in page.pets], page.has_next) == ([2, 3], True)
    ((operation, parameters),) = wire.calls
    assert (operation, parameters["Limit"], "FilterExpression" in parameters) == ("Query", 3, False)
    assert parameters.get("IndexName") == ("by-status" if status else None)
