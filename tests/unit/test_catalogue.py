"""The catalogue on moto: ids, order, pages, filters, and what is left behind when an answer is lost."""

import hashlib
import re
from typing import TYPE_CHECKING, Any

import pytest
from animal_store import catalogue, dynamodb, settings
from animal_store.auth import Caller
from animal_store.errors import IdempotencyKeyReused, ServiceUnavailable
from botocore.exceptions import ClientError

from tests.unit.conftest import Clock
from tests.unit.fault_injection import (
    DENIED,
    SERVER_ERROR,
    THROTTLED,
    Wire,
    answer,
    cut_answer,
    error,
    lost_answer,
    lost_request,
)

if TYPE_CHECKING:
    from animal_store.models import NewPet
    from animal_store.pet_status import PetStatus
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.usefixtures("tables", "budget")

REX: "NewPet" = {"name": "Rex", "categoryId": 3, "status": "available"}
MIA: "NewPet" = {"name": "Mia", "categoryId": 2**63 - 1}
CALLER = Caller("0123456789abcdef" * 4, "unit tests")
KEY = "key"
DAY = 24 * 60 * 60


def stored(tables: "DynamoDBClient") -> dict[str, list[dict[str, Any]]]:
    """Read every item of the table, by partition."""
    partitions: dict[str, list[dict[str, Any]]] = {}
    for item in tables.scan(TableName=settings.ANIMALS_TABLE, ConsistentRead=True)["Items"]:
        partitions.setdefault(item["pk"]["S"], []).append(item)
    return partitions


def stored_ids(tables: "DynamoDBClient") -> list[int]:
    return sorted(int(item["id"]["N"]) for item in stored(tables).get("pet", []))


def put_animal(tables: "DynamoDBClient", pet_id: int, status: str | None = None) -> None:
    item: dict[str, Any] = {
        "pk": {"S": "pet"},
        "id": {"N": str(pet_id)},
        "name": {"S": "Max"},
        "categoryId": {"N": "1"},
    }
    tables.put_item(TableName=settings.ANIMALS_TABLE, Item=item if status is None else item | {"status": {"S": status}})


def cancelled(*codes: str) -> Any:
    return error(400, "TransactionCanceledException", CancellationReasons=[{"Code": code} for code in codes])


# -- creating ----------------------------------------------------------------------------------------------------------


def test_ids_rise_from_one() -> None:
    ids = [catalogue.create_pet(REX, CALLER, None).pet["id"] for _ in range(3)]

    assert ids == [1, 2, 3]


@pytest.mark.parametrize("new", [REX, MIA])
@pytest.mark.parametrize("key", [None, KEY])
def test_animal_that_was_added_can_be_read(new: "NewPet", key: str | None) -> None:
    creation = catalogue.create_pet(new, CALLER, key)

    assert creation == ({"id": 1, **new}, False)
    assert catalogue.get_pet(1) == {"id": 1, **new}


@pytest.mark.parametrize("name", ["\U0001f415", "\0", " x ", 'a"\\', "x" * 256])
def test_name_is_kept_exactly(name: str) -> None:
    catalogue.create_pet({"name": name, "categoryId": -(2**63)}, CALLER, None)

    assert catalogue.get_pet(1) == {"id": 1, "name": name, "categoryId": -(2**63)}


def test_animal_without_status_is_stored_without_one(tables: "DynamoDBClient") -> None:
    catalogue.create_pet(MIA, CALLER, None)

    (item,) = stored(tables)["pet"]
    assert "status" not in item


def test_lost_answer_of_the_counter_leaves_a_gap_and_no_double(tables: "DynamoDBClient", wire: Wire) -> None:
    wire.fail("UpdateItem", lost_answer)

    assert catalogue.create_pet(REX, CALLER, None).pet["id"] == 2
    assert stored_ids(tables) == [2]


@pytest.mark.parametrize(
    "fault", [answer(200, b'{"Attributes": {"va'), answer(200, b""), answer(200, b"\xff"), cut_answer]
)
def test_garbled_answer_of_the_counter_is_no_bug(fault: Any, tables: "DynamoDBClient", wire: Wire) -> None:
    wire.fail("UpdateItem", fault)

    with pytest.raises(ServiceUnavailable):
        catalogue.create_pet(REX, CALLER, None)

    assert stored_ids(tables) == []


@pytest.mark.parametrize("faults", [[lost_request], [lost_request, lost_request], [SERVER_ERROR], [THROTTLED]])
def test_lost_write_is_written_again(faults: list[Any], tables: "DynamoDBClient", wire: Wire) -> None:
    wire.fail("PutItem", *faults)

    assert catalogue.create_pet(REX, CALLER, None).pet["id"] == 1
    assert stored_ids(tables) == [1]


@pytest.mark.parametrize("faults", [[lost_answer], [lost_answer, lost_answer], [lost_request, lost_answer]])
def test_lost_answer_of_a_write_makes_one_animal_and_no_error(
    faults: list[Any], tables: "DynamoDBClient", wire: Wire
) -> None:
    wire.fail("PutItem", *faults)

    creation = catalogue.create_pet(REX, CALLER, None)

    assert creation == ({"id": 1, **REX}, False)
    assert wire.sent == ["UpdateItem", *["PutItem"] * (len(faults) + 1)]
    assert stored_ids(tables) == [1]


def test_tokens_of_two_creations_differ(tables: "DynamoDBClient") -> None:
    catalogue.create_pet(REX, CALLER, None)
    catalogue.create_pet(REX, CALLER, None)

    tokens = {item["token"]["S"] for item in stored(tables)["pet"]}

    assert len(tokens) == 2
    assert all(re.fullmatch(r"[0-9a-f]{32}", token) for token in tokens)


@pytest.mark.parametrize("key", [None, KEY])
def test_animal_under_the_same_id_is_never_overwritten(key: str | None, tables: "DynamoDBClient") -> None:
    put_animal(tables, 1)
    before = stored(tables)["pet"]

    with pytest.raises(RuntimeError, match=r"^the counter gave id 1, which is taken$"):
        catalogue.create_pet(REX, CALLER, key)

    assert stored(tables)["pet"] == before
    assert not any(partition.startswith("idempotency#") for partition in stored(tables))


def test_foreign_animal_found_by_a_retried_write_is_no_success(tables: "DynamoDBClient", wire: Wire) -> None:
    put_animal(tables, 1)
    wire.fail("PutItem", lost_request)

    with pytest.raises(RuntimeError, match=r"^the counter gave id 1, which is taken$"):
        catalogue.create_pet(REX, CALLER, None)


@pytest.mark.parametrize(("operation", "key"), [("UpdateItem", None), ("PutItem", None), ("TransactWriteItems", KEY)])
def test_refusal_by_the_store_is_told_as_it_is(operation: str, key: str | None, wire: Wire) -> None:
    wire.fail(operation, DENIED)

    with pytest.raises(ClientError, match="AccessDeniedException"):
        catalogue.create_pet(REX, CALLER, key)


@pytest.mark.parametrize(("operation", "key"), [("UpdateItem", None), ("PutItem", None), ("TransactWriteItems", KEY)])
@pytest.mark.parametrize("fault", [lost_request, THROTTLED, SERVER_ERROR])
def test_store_that_stays_away_is_told_after_three_attempts(
    operation: str, key: str | None, fault: Any, wire: Wire
) -> None:
    wire.fail(operation, *[fault] * 9)

    with pytest.raises(ServiceUnavailable):
        catalogue.create_pet(REX, CALLER, key)

    assert wire.sent.count(operation) == 3


@pytest.mark.parametrize("key", [None, KEY])
def test_item_says_who_added_it_when_and_no_answer_does(
    key: str | None, tables: "DynamoDBClient", clock: Clock
) -> None:
    creation = catalogue.create_pet(REX, CALLER, key)

    (item,) = stored(tables)["pet"]
    assert (item["createdBy"], item["createdAt"]) == ({"S": "0123456789ab"}, {"N": str(int(clock.wall))})
    pet = {"id": 1, **REX}
    assert creation.pet == catalogue.get_pet(1) == pet
    assert catalogue.list_pets(20, None, after=0).pets == catalogue.list_pets(20, "available", after=0).pets == [pet]


# -- creating with an Idempotency-Key ----------------------------------------------------------------------------------


def test_same_key_and_body_make_one_animal(tables: "DynamoDBClient") -> None:
    first = catalogue.create_pet(REX, CALLER, KEY)
    second = catalogue.create_pet(REX, CALLER, KEY)

    assert first == ({"id": 1, **REX}, False)
    assert second == ({"id": 1, **REX}, True)
    assert stored_ids(tables) == [1]


def test_replay_keeps_when_the_animal_was_added(
    tables: "DynamoDBClient", clock: Clock, budget: dynamodb.Budget
) -> None:
    catalogue.create_pet(REX, CALLER, KEY)
    before = stored(tables)["pet"]
    clock.advance(100)
    budget.deadline += 100

    assert catalogue.create_pet(REX, CALLER, KEY).replayed

    assert stored(tables)["pet"] == before


def test_order_of_members_makes_no_other_body(tables: "DynamoDBClient") -> None:
    from animal_store.validators import NEW_PET

    first = catalogue.create_pet(NEW_PET.python({"name": "Rex", "categoryId": 3}), CALLER, KEY)
    second = catalogue.create_pet(NEW_PET.python({"categoryId": 3, "x": 1, "name": "Rex"}), CALLER, KEY)

    assert second == (first.pet, True)
    assert stored_ids(tables) == [1]


@pytest.mark.parametrize(
    "other",
    [
        {"name": "Rex", "categoryId": 3},
        {"name": "Rex", "categoryId": 3, "status": "sold"},
        {"name": "Rex", "categoryId": 4, "status": "available"},
        {"name": "rex", "categoryId": 3, "status": "available"},
    ],
)
def test_same_key_with_another_body_is_refused(other: "NewPet", tables: "DynamoDBClient") -> None:
    catalogue.create_pet(REX, CALLER, KEY)

    with pytest.raises(IdempotencyKeyReused):
        catalogue.create_pet(other, CALLER, KEY)

    assert stored_ids(tables) == [1]


@pytest.mark.parametrize(("caller", "key"), [(Caller("f" * 64, "unit tests"), KEY), (CALLER, "another")])
def test_same_value_of_another_caller_is_another_key(caller: Caller, key: str, tables: "DynamoDBClient") -> None:
    catalogue.create_pet(REX, CALLER, KEY)

    assert catalogue.create_pet(REX, caller, key) == ({"id": 2, **REX}, False)
    assert stored_ids(tables) == [1, 2]


def test_record_says_which_animal_until_when_and_not_the_key(tables: "DynamoDBClient", clock: Clock) -> None:
    catalogue.create_pet(REX, CALLER, "order-17")

    partition = "idempotency#" + hashlib.sha256(f"{CALLER.key_hash}#order-17".encode()).hexdigest()
    (record,) = stored(tables)[partition]
    fingerprint = hashlib.sha256(b'{"name":"Rex","categoryId":3,"status":"available"}').hexdigest()
    assert record == {
        "pk": {"S": partition},
        "id": {"N": "0"},
        "petId": {"N": "1"},
        "fingerprint": {"S": fingerprint},
        "expires": {"N": str(int(clock.wall) + DAY)},
    }


def test_key_is_kept_for_a_day(tables: "DynamoDBClient", clock: Clock, budget: dynamodb.Budget) -> None:
    catalogue.create_pet(REX, CALLER, KEY)
    budget.deadline += 2 * DAY

    clock.advance(DAY - 1)
    assert catalogue.create_pet(REX, CALLER, KEY).replayed
    clock.advance(1)
    assert catalogue.create_pet(MIA, CALLER, KEY) == ({"id": 3, **MIA}, False)

    assert catalogue.create_pet(MIA, CALLER, KEY) == ({"id": 3, **MIA}, True)
    assert stored_ids(tables) == [1, 3]


@pytest.mark.parametrize(
    "faults", [[lost_request], [lost_answer], [lost_answer, lost_answer], [SERVER_ERROR, lost_answer]]
)
def test_lost_answer_of_a_transaction_makes_one_animal_and_is_no_replay(
    faults: list[Any], tables: "DynamoDBClient", wire: Wire
) -> None:
    wire.fail("TransactWriteItems", *faults)

    assert catalogue.create_pet(REX, CALLER, KEY) == ({"id": 1, **REX}, False)
    assert stored_ids(tables) == [1]


def test_retries_of_a_transaction_carry_one_token(wire: Wire) -> None:
    wire.fail("TransactWriteItems", lost_request, lost_request)

    catalogue.create_pet(REX, CALLER, KEY)

    tokens = wire.bodies("TransactWriteItems", "ClientRequestToken")
    assert len(tokens) == 3
    assert len(set(tokens)) == 1


def test_crash_between_the_writes_leaves_neither(tables: "DynamoDBClient", wire: Wire) -> None:
    wire.fail("TransactWriteItems", lost_request, lost_request, lost_request)

    with pytest.raises(ServiceUnavailable):
        catalogue.create_pet(REX, CALLER, KEY)

    assert list(stored(tables)) == ["counter"]
    assert catalogue.create_pet(REX, CALLER, KEY) == ({"id": 2, **REX}, False)


@pytest.mark.parametrize(
    "codes",
    [
        ("TransactionConflict", "None"),
        ("None", "TransactionConflict"),
        ("ThrottlingError", "None"),
        ("None", "ProvisionedThroughputExceeded"),
    ],
)
def test_transaction_that_may_succeed_later_is_tried_again(
    codes: tuple[str, str], tables: "DynamoDBClient", wire: Wire, clock: Clock
) -> None:
    wire.fail("TransactWriteItems", *[cancelled(*codes)] * 5)

    assert catalogue.create_pet(REX, CALLER, KEY) == ({"id": 1, **REX}, False)

    assert stored_ids(tables) == [1]
    assert len(clock.pauses) == 5
    assert all(0 <= pause <= 0.05 * 2**attempt for attempt, pause in enumerate(clock.pauses))


def test_conflict_that_ends_with_the_other_request_s_record_is_a_replay(tables: "DynamoDBClient", wire: Wire) -> None:
    first = catalogue.create_pet(REX, CALLER, KEY)
    wire.fail("TransactWriteItems", cancelled("TransactionConflict", "None"))

    assert catalogue.create_pet(REX, CALLER, KEY) == (first.pet, True)
    assert stored_ids(tables) == [1]


def test_conflict_without_end_is_given_up_at_once_after_six_attempts(
    wire: Wire, tables: "DynamoDBClient", clock: Clock
) -> None:
    wire.fail("TransactWriteItems", *[cancelled("TransactionConflict", "None")] * 9)

    with pytest.raises(ServiceUnavailable):
        catalogue.create_pet(REX, CALLER, KEY)

    assert wire.sent.count("TransactWriteItems") == 6
    assert len(clock.pauses) == 5
    assert stored_ids(tables) == []


@pytest.mark.parametrize("codes", [(), ("ValidationError", "None"), ("None", "ItemCollectionSizeLimitExceeded")])
def test_transaction_cancelled_for_another_reason_is_told_as_it_is(codes: tuple[str, ...], wire: Wire) -> None:
    wire.fail("TransactWriteItems", cancelled(*codes))

    with pytest.raises(ClientError, match="TransactionCanceledException"):
        catalogue.create_pet(REX, CALLER, KEY)

    assert wire.sent.count("TransactWriteItems") == 1


# -- reading -----------------------------------------------------------------------------------------------------------


def test_absent_animal_is_none() -> None:
    assert catalogue.get_pet(1) is None


@pytest.mark.parametrize("key", [None, KEY])
def test_counter_and_records_are_no_animals(key: str | None) -> None:
    catalogue.create_pet(REX, CALLER, key)

    assert catalogue.get_pet(0) is None
    assert [pet["id"] for pet in catalogue.list_pets(100, None, after=-1).pets] == [1]


def test_animal_and_whole_list_are_read_strongly_consistent(wire: Wire) -> None:
    catalogue.get_pet(1)
    catalogue.list_pets(20, None, after=0)

    assert [parameters["ConsistentRead"] for _, parameters in wire.parameters] == [True, True]


# -- listing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [None, "sold"])
def test_list_is_ordered_by_the_number_that_the_id_is(status: "PetStatus | None", tables: "DynamoDBClient") -> None:
    for pet_id in (10, 9, 100, 1, 2**63 - 1, 2):
        put_animal(tables, pet_id, "sold")

    page = catalogue.list_pets(100, status, after=0)

    assert [pet["id"] for pet in page.pets] == [1, 2, 9, 10, 100, 2**63 - 1]


@pytest.mark.parametrize("status", [None, "sold"])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_page_is_full_until_the_last_and_says_exactly_whether_one_follows(
    limit: int, count: int, status: "PetStatus | None", tables: "DynamoDBClient"
) -> None:
    for pet_id in range(1, count + 1):
        put_animal(tables, pet_id, "sold")

    pages = [catalogue.list_pets(limit, status, after=0)]
    while pages[-1].has_next and len(pages) <= count:
        pages.append(catalogue.list_pets(limit, status, after=pages[-1].pets[-1]["id"]))

    assert [pet["id"] for page in pages for pet in page.pets] == list(range(1, count + 1))
    assert [len(page.pets) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    assert len(pages) == max(1, -(-count // limit))


def test_page_of_a_hundred_has_room_for_the_one_that_tells_of_the_next(tables: "DynamoDBClient") -> None:
    for pet_id in range(1, 102):
        put_animal(tables, pet_id)

    page = catalogue.list_pets(100, None, after=0)

    assert (len(page.pets), page.has_next) == (100, True)
    assert not catalogue.list_pets(100, None, after=1).has_next


def test_list_starts_behind_the_id_whether_there_is_such_an_animal_or_not(tables: "DynamoDBClient") -> None:
    for pet_id in (2, 4, 6):
        put_animal(tables, pet_id)

    assert [pet["id"] for pet in catalogue.list_pets(20, None, after=4).pets] == [6]
    assert [pet["id"] for pet in catalogue.list_pets(20, None, after=3).pets] == [4, 6]
    assert catalogue.list_pets(20, None, after=6) == ([], False)


def test_filter_finds_exactly_the_animals_with_the_status(tables: "DynamoDBClient") -> None:
    put_animal(tables, 1, "sold")
    put_animal(tables, 2, "available")
    put_animal(tables, 3)
    put_animal(tables, 4, "sold")

    assert [pet["id"] for pet in catalogue.list_pets(20, "sold", after=0).pets] == [1, 4]
    assert [pet["id"] for pet in catalogue.list_pets(20, "available", after=0).pets] == [2]
    assert [pet["id"] for pet in catalogue.list_pets(20, "pending", after=0).pets] == []


def test_rare_status_costs_one_query_that_reads_nothing_else(tables: "DynamoDBClient", wire: Wire) -> None:
    for pet_id in range(1, 60):
        put_animal(tables, pet_id, "available")
    put_animal(tables, 60, "sold")

    page = catalogue.list_pets(1, "sold", after=0)

    assert ([pet["id"] for pet in page.pets], page.has_next) == ([60], False)
    assert wire.sent == ["Query"]
    ((_, parameters),) = wire.parameters
    assert parameters["IndexName"] == "by-status"
    assert "FilterExpression" not in parameters


def test_animals_without_status_are_not_in_the_index(tables: "DynamoDBClient") -> None:
    catalogue.create_pet(MIA, CALLER, None)
    catalogue.create_pet(REX, CALLER, None)
    catalogue.create_pet(REX, CALLER, KEY)

    indexed = tables.scan(TableName=settings.ANIMALS_TABLE, IndexName="by-status")["Items"]

    assert sorted(item["id"]["N"] for item in indexed) == ["2", "3"]


def test_filtered_list_has_whole_animals() -> None:
    catalogue.create_pet(REX, CALLER, None)

    assert catalogue.list_pets(20, "available", after=0).pets == [{"id": 1, **REX}]
