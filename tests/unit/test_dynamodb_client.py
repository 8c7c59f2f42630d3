"""What DynamoDB is asked, how often, until when, and what is made of its answers.

Failures of each call, whatever it is, are in reliability/test_faults.py.
"""

import hashlib
import json
from typing import Any

import pytest
from animal_store import catalogue, dynamodb
from animal_store.auth import Caller
from animal_store.errors import IdempotencyKeyReused, ServiceUnavailable
from animal_store.models import NewPet
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError, NoCredentialsError, SSLError

from tests.support import handlers
from tests.support.clock import Clock
from tests.support.fault_injection import (
    LOST_REQUEST,
    Attempt,
    Fault,
    FaultyStore,
    answering,
    error,
    failing_with,
)

pytestmark = pytest.mark.usefixtures("store")

REX: NewPet = {"name": "Rex", "categoryId": 3, "status": "available"}
MIA: NewPet = {"name": "Mia", "categoryId": 2**63 - 1}
CALLER = Caller("0123456789abcdef" * 4, "unit tests")
DAY = 24 * 60 * 60


@pytest.mark.parametrize(
    ("fault", "expected", "attempts"),
    [
        (failing_with(SSLError, error="handshake"), ServiceUnavailable, 3),
        (failing_with(NoCredentialsError), ServiceUnavailable, 1),
        (error(500, "SomethingNewException"), ServiceUnavailable, 3),
        (error(400, "ProvisionedThroughputExceededException"), ServiceUnavailable, 3),
        (error(400, "RequestLimitExceeded"), ServiceUnavailable, 3),
        (error(400, "Throttling"), ServiceUnavailable, 3),
        (error(400, "ThrottlingException"), ServiceUnavailable, 3),
        (error(400, "TransactionInProgressException"), ServiceUnavailable, 3),
        (error(400, "ValidationException"), ClientError, 1),
    ],
)
def test_failure_is_retried_if_another_attempt_may_succeed(
    fault: Fault, expected: type[Exception], attempts: int, store: FaultyStore
) -> None:
    store.fail("GetItem", fault, fault, fault)

    with pytest.raises(expected):
        catalogue.get_pet(17)

    assert dynamodb.invocation.get().calls == len(store.sent) == attempts


def asking_to_wait(milliseconds: str) -> Fault:
    """Throttle with the header by which AWS asks for a longer pause."""
    return answering(400, b'{"__type": "Throttling"}', retry_after=milliseconds)


@pytest.mark.parametrize(
    ("fault", "seconds_left", "attempts"),
    [
        (LOST_REQUEST, 3.499, 0),
        (LOST_REQUEST, 3.5, 1),
        (LOST_REQUEST, 5.499, 1),
        (LOST_REQUEST, 5.5, 2),  # 2 seconds may pass before the second attempt
        (asking_to_wait("soon"), 5.5, 2),
        (asking_to_wait("1500"), 6.999, 1),
        (asking_to_wait("1500"), 7, 2),
        (asking_to_wait("600000"), 10.499, 1),
        (asking_to_wait("600000"), 10.5, 2),  # the SDK waits for 5 more at most
    ],
)
def test_attempt_is_made_if_it_can_end_within_the_invocation(
    fault: Fault, seconds_left: float, attempts: int, clock: Clock, store: FaultyStore
) -> None:
    dynamodb.invocation.get().deadline = clock.uptime + seconds_left
    store.fail("GetItem", fault, fault, fault)

    with pytest.raises(ServiceUnavailable):
        catalogue.get_pet(17)

    assert len(store.sent) == attempts


def test_client_has_the_timeouts_of_the_deadlines_and_names_sdk_and_service() -> None:
    config: Any = dynamodb.client.meta.config

    assert (config.connect_timeout, config.read_timeout) == (1, 2)
    assert config.user_agent.startswith("Botocore/")
    assert config.user_agent.endswith(" app/animal-store")


def test_animal_is_stored_with_who_added_it_and_its_key_for_a_day(
    clock: Clock,
) -> None:
    key = hashlib.sha256(f"{CALLER.key_hash}#order-17".encode()).hexdigest()
    body = b'{"name":"Mia","categoryId":9223372036854775807}'

    catalogue.create_pet(MIA, CALLER, "order-17")

    assert handlers.items("pet")[-1] == {
        "pk": {"S": "pet"},
        "id": {"N": "6"},
        "name": {"S": "Mia"},
        "categoryId": {"N": "9223372036854775807"},
        "createdBy": {"S": "0123456789ab"},
        "createdAt": {"N": str(int(clock.wall))},
    }
    assert handlers.items("idempotency") == [
        {
            "pk": {"S": f"idempotency#{key}"},
            "id": {"N": "0"},
            "petId": {"N": "6"},
            "fingerprint": {"S": hashlib.sha256(body).hexdigest()},
            "expires": {"N": str(int(clock.wall) + DAY)},
        }
    ]


def test_idempotency_key_is_free_again_after_a_day(clock: Clock) -> None:
    catalogue.create_pet(REX, CALLER, "order-17")
    clock.advance(DAY - 1)
    assert catalogue.create_pet(REX, CALLER, "order-17") == ({"id": 6, **REX}, True)
    with pytest.raises(IdempotencyKeyReused):
        catalogue.create_pet(MIA, CALLER, "order-17")
    clock.advance(1)

    assert catalogue.create_pet(MIA, CALLER, "order-17") == ({"id": 9, **MIA}, False)


@pytest.mark.parametrize("key", [None, "order-17"])
def test_animal_under_the_same_id_is_never_overwritten(
    key: str | None,
) -> None:
    before = handlers.pets()
    counter = {"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": "4"}}
    handlers.ask("PutItem", handlers.ANIMALS, Item=counter)

    with pytest.raises(RuntimeError, match=r"^the counter gave id 5, which is taken$"):
        catalogue.create_pet(REX, CALLER, key)

    assert handlers.pets() == before


def cancelled(*codes: str) -> Fault:
    reasons = [{"Code": code} for code in codes]
    return error(400, "TransactionCanceledException", CancellationReasons=reasons)


@pytest.mark.parametrize(
    "codes",
    [
        ("None", "TransactionConflict"),
        ("ThrottlingError",),
        ("ProvisionedThroughputExceeded",),
    ],
)
def test_transaction_that_may_succeed_later_is_tried_six_times(
    codes: tuple[str, ...], store: FaultyStore, clock: Clock
) -> None:
    store.fail("TransactWriteItems", *[cancelled(*codes)] * 6)

    with pytest.raises(ServiceUnavailable):
        catalogue.create_pet(REX, CALLER, "key")

    assert store.sent == ["UpdateItem"] + ["TransactWriteItems"] * 6
    for pause, longest in zip(clock.pauses, [0.05, 0.1, 0.2, 0.4, 0.8], strict=True):
        assert pause <= longest


@pytest.mark.parametrize("codes", [(), ("ValidationError", "None")])
def test_transaction_cancelled_for_another_reason_is_not_tried_again(
    codes: tuple[str, ...], store: FaultyStore
) -> None:
    store.fail("TransactWriteItems", cancelled(*codes))

    with pytest.raises(ClientError, match="TransactionCanceledException"):
        catalogue.create_pet(REX, CALLER, "key")

    assert store.sent == ["UpdateItem", "TransactWriteItems"]


def test_own_creation_is_not_a_replay_when_the_store_has_forgotten_its_token(
    store: FaultyStore,
) -> None:
    def carry_out_twice(attempt: Attempt) -> AWSResponse:
        attempt.carry_out()
        request: Any = attempt.request
        body = json.loads(request.body) | {"ClientRequestToken": "another"}
        request.body = json.dumps(body).encode()
        return attempt.carry_out()

    store.fail("TransactWriteItems", carry_out_twice)

    assert catalogue.create_pet(REX, CALLER, "key") == ({"id": 6, **REX}, False)


@pytest.mark.parametrize(
    ("status", "ids", "query"),
    [
        (None, [2, 3], {"Limit": 3, "ConsistentRead": True}),
        ("available", [4], {"Limit": 3, "IndexName": "by-status"}),
    ],
)
def test_page_is_one_query_that_reads_one_animal_more_than_it_shows(
    status: Any, ids: list[int], query: dict[str, Any], store: FaultyStore
) -> None:
    page = catalogue.list_pets(2, status, after=1)

    assert [pet["id"] for pet in page.pets] == ids
    assert page.has_next is (status is None)
    ((operation, parameters),) = store.calls
    assert operation == "Query"
    assert parameters.items() >= query.items()


def test_animal_is_read_consistently(store: FaultyStore) -> None:
    catalogue.get_pet(1)

    assert store.calls[0][1]["ConsistentRead"] is True
