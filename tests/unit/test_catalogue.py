"""The catalogue: what a creation writes, and what it makes of ids, keys and conflicts that the contract cannot cause.

Failures of each call, whatever it is, are in test_events.py. The store has the five animals of the events.
"""

import hashlib
from typing import TYPE_CHECKING, Any

import pytest
from animal_store import catalogue, dynamodb
from animal_store.auth import Caller
from animal_store.errors import ServiceUnavailable
from botocore.exceptions import ClientError

from tests import functions
from tests.fault_injection import LOST_REQUEST, Wire, error
from tests.unit.conftest import Clock

if TYPE_CHECKING:
    from animal_store.models import NewPet
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.usefixtures("wire", "budget")

REX: "NewPet" = {"name": "Rex", "categoryId": 3, "status": "available"}
MIA: "NewPet" = {"name": "Mia", "categoryId": 2**63 - 1}
CALLER = Caller("0123456789abcdef" * 4, "unit tests")
DAY = 24 * 60 * 60


def written(tables: "DynamoDBClient") -> list[dict[str, Any]]:
    """Read what the store has but for the counter and the animals of the events."""
    return [item for item in functions.items(tables) if item["id"]["N"] not in "12345" and item["pk"]["S"] != "counter"]


def cancelled(*codes: str) -> Any:
    return error(400, "TransactionCanceledException", CancellationReasons=[{"Code": code} for code in codes])


@pytest.mark.parametrize("key", [None, "order-17"])
@pytest.mark.parametrize("faults", [[], [LOST_REQUEST]])
def test_animal_under_the_same_id_is_never_overwritten(
    key: str | None, faults: list[Any], tables: "DynamoDBClient", wire: Wire
) -> None:
    foreign: Any = {"pk": {"S": "pet"}, "id": {"N": "6"}, "name": {"S": "Max"}, "categoryId": {"N": "1"}}
    tables.put_item(TableName=functions.ANIMALS, Item=foreign)
    wire.fail("TransactWriteItems" if key else "PutItem", *faults)

    with pytest.raises(RuntimeError, match=r"^the counter gave id 6, which is taken$"):
        catalogue.create_pet(REX, CALLER, key)

    assert written(tables) == [foreign]


def test_record_of_a_key_says_which_animal_until_when_and_not_the_key(tables: "DynamoDBClient", clock: Clock) -> None:
    catalogue.create_pet(REX, CALLER, "order-17")

    record = next(item for item in written(tables) if item["pk"]["S"] != "pet")
    assert record == {
        "pk": {"S": "idempotency#" + hashlib.sha256(f"{CALLER.key_hash}#order-17".encode()).hexdigest()},
        "id": {"N": "0"},
        "petId": {"N": "6"},
        "fingerprint": {"S": hashlib.sha256(b'{"name":"Rex","categoryId":3,"status":"available"}').hexdigest()},
        "expires": {"N": str(int(clock.wall) + DAY)},
    }


def test_key_is_kept_for_a_day(clock: Clock, budget: dynamodb.Budget) -> None:
    catalogue.create_pet(REX, CALLER, "key")
    budget.deadline += 2 * DAY

    clock.advance(DAY - 1)
    assert catalogue.create_pet(REX, CALLER, "key").replayed
    clock.advance(1)
    assert catalogue.create_pet(MIA, CALLER, "key") == ({"id": 8, **MIA}, False)

    assert catalogue.create_pet(MIA, CALLER, "key") == ({"id": 8, **MIA}, True)


CONFLICT = ("TransactionConflict", "None")


@pytest.mark.parametrize("codes", [CONFLICT, CONFLICT[::-1], ("ThrottlingError",), ("ProvisionedThroughputExceeded",)])
def test_transaction_that_may_succeed_later_is_tried_six_times(
    codes: tuple[str, ...], wire: Wire, clock: Clock, tables: "DynamoDBClient"
) -> None:
    wire.fail("TransactWriteItems", *[cancelled(*codes)] * 11)

    with pytest.raises(ServiceUnavailable):
        catalogue.create_pet(REX, CALLER, "key")
    assert written(tables) == []
    assert catalogue.create_pet(REX, CALLER, "key") == ({"id": 7, **REX}, False)

    assert wire.sent.count("TransactWriteItems") == 12
    assert [pause > 0.05 * 2 ** (number % 5) for number, pause in enumerate(clock.pauses)] == [False] * 10


@pytest.mark.parametrize("codes", [(), ("ValidationError", "None"), ("None", "ItemCollectionSizeLimitExceeded")])
def test_transaction_cancelled_for_another_reason_is_told_as_it_is(codes: tuple[str, ...], wire: Wire) -> None:
    wire.fail("TransactWriteItems", cancelled(*codes))

    with pytest.raises(ClientError, match="TransactionCanceledException"):
        catalogue.create_pet(REX, CALLER, "key")

    assert wire.sent.count("TransactWriteItems") == 1


@pytest.mark.parametrize(("status", "ids"), [(None, [2, 3]), ("available", [4])])
def test_page_is_one_consistent_query_that_reads_one_animal_more_than_it_shows(
    status: Any, ids: list[int], wire: Wire
) -> None:
    page = catalogue.list_pets(len(ids), status, after=1)

    assert ([pet["id"] for pet in page.pets], page.has_next) == (ids, status is None)
    ((operation, parameters),) = wire.calls
    assert (operation, parameters["Limit"], "FilterExpression" in parameters) == ("Query", len(ids) + 1, False)
    assert parameters.get("IndexName") == ("by-status" if status else None)
    assert parameters.get("ConsistentRead", False) is (status is None)  # an index cannot be
    catalogue.get_pet(1)
    assert wire.calls[1][1]["ConsistentRead"] is True
