"""What DynamoDB is asked, how often, until when, and what is made of its answers.

Failures of each call, whatever it is, are in reliability/test_faults.py.
"""

import hashlib
import json
import platform
from typing import Any

import botocore
import pytest
from animal_store import catalogue, dynamodb
from animal_store.auth import Caller
from animal_store.dynamodb import Invocation
from animal_store.errors import IdempotencyKeyReused, ServiceUnavailable
from animal_store.models import NewPet
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError, NoCredentialsError, SSLError

from tests.support import handlers
from tests.support.fault_injection import (
    LOST_REQUEST,
    THROTTLED,
    Attempt,
    Fault,
    FaultyStore,
    answering,
    error,
    failing_with,
)
from tests.support.requests import Clock
from tools import ROOT
from tools.local.events import PETS

pytestmark = pytest.mark.usefixtures("store", "invocation")

REX: NewPet = {"name": "Rex", "categoryId": 3, "status": "available"}
MIA: NewPet = {"name": "Mia", "categoryId": 2**63 - 1}
CALLER = Caller("0123456789abcdef" * 4, "unit tests")
DAY = 24 * 60 * 60
ATTEMPT = 3.5  # the longest that one attempt takes
PAUSE = 2  # the longest before the third


@pytest.mark.parametrize(
    ("fault", "expected", "attempts"),
    [
        (failing_with(SSLError, error=OSError("handshake")), ServiceUnavailable, 3),
        (failing_with(NoCredentialsError), ServiceUnavailable, 1),
        (answering(500, b""), ServiceUnavailable, 3),
        (error(500, "SomethingNewException"), ServiceUnavailable, 3),
        (error(400, "ProvisionedThroughputExceededException"), ServiceUnavailable, 3),
        (error(400, "RequestLimitExceeded"), ServiceUnavailable, 3),
        (error(400, "Throttling"), ServiceUnavailable, 3),
        (error(400, "ThrottlingException"), ServiceUnavailable, 3),
        (error(400, "TransactionInProgressException"), ServiceUnavailable, 3),
        (error(400, "AccessDeniedException"), ClientError, 1),
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
    body = b'{"__type": "ThrottlingException"}'
    return answering(400, body, headers={"x-amz-retry-after": milliseconds})


@pytest.mark.parametrize(
    ("seconds_left", "attempts"),
    [(ATTEMPT - 0.001, 0), (ATTEMPT, 1), (PAUSE + ATTEMPT, 2)],
)
def test_attempt_is_made_if_it_can_end_within_the_invocation(
    seconds_left: float,
    attempts: int,
    clock: Clock,
    store: FaultyStore,
    invocation: Invocation,
) -> None:
    invocation.deadline = clock.uptime + seconds_left
    store.fail("GetItem", LOST_REQUEST, LOST_REQUEST, LOST_REQUEST)

    with pytest.raises(ServiceUnavailable):
        catalogue.get_pet(17)

    assert len(store.sent) == attempts


@pytest.mark.parametrize(
    ("seconds", "fault", "attempts"),
    [
        (4.501, LOST_REQUEST, 1),
        (4.5, LOST_REQUEST, 2),
        (3, THROTTLED, 2),
        (1.75, asking_to_wait("soon"), 3),
        (0.5, asking_to_wait("1500"), 3),
        (0.5, asking_to_wait("600000"), 1),
    ],
)
def test_slow_attempts_leave_time_for_fewer(
    seconds: float, fault: Fault, attempts: int, clock: Clock, store: FaultyStore
) -> None:
    def slow(attempt: Attempt) -> Any:
        clock.advance(seconds)
        return fault(attempt)

    store.fail("GetItem", slow, slow, slow)

    with pytest.raises(ServiceUnavailable):
        catalogue.get_pet(17)

    assert len(store.sent) == attempts


def test_pause_that_the_store_asks_for_is_5_seconds_at_most(
    store: FaultyStore, invocation: Invocation
) -> None:
    invocation.deadline += 0.5 + PAUSE + 5 + ATTEMPT - 10
    store.fail("GetItem", asking_to_wait("600000"))

    catalogue.get_pet(17)

    assert len(store.sent) == 2


def test_client_has_the_timeouts_that_the_deadlines_count_on() -> None:
    config: Any = dynamodb.client.meta.config

    assert (config.connect_timeout, config.read_timeout) == (1, 2)
    assert dynamodb._ATTEMPT_SECONDS == ATTEMPT


def stored(store: FaultyStore, partition: str) -> list[dict[str, Any]]:
    """Read the items of the partitions that begin so; but for the animals of the events."""
    items = handlers.items(handlers.client(store.database))
    items = [item for item in items if item["pk"]["S"].startswith(partition)]
    return items[len(PETS) :] if partition == "pet" else items


def test_animal_is_stored_with_who_added_it_and_when(
    clock: Clock, store: FaultyStore
) -> None:
    catalogue.create_pet(MIA, CALLER, "order-17")

    assert stored(store, "pet") == [
        {
            "pk": {"S": "pet"},
            "id": {"N": "6"},
            "name": {"S": "Mia"},
            "categoryId": {"N": "9223372036854775807"},
            "createdBy": {"S": "0123456789ab"},
            "createdAt": {"N": str(int(clock.wall))},
        }
    ]
    assert "'createdBy = :key'" in (ROOT / "docs/runbook.md").read_text()


def test_idempotency_key_is_stored_for_a_day_by_its_hash(
    clock: Clock, store: FaultyStore
) -> None:
    catalogue.create_pet(MIA, CALLER, "order-17")

    key = hashlib.sha256(f"{CALLER.key_hash}#order-17".encode()).hexdigest()
    body = hashlib.sha256(
        b'{"name":"Mia","categoryId":9223372036854775807}'
    ).hexdigest()
    assert stored(store, "idempotency") == [
        {
            "pk": {"S": f"idempotency#{key}"},
            "id": {"N": "0"},
            "petId": {"N": "6"},
            "fingerprint": {"S": body},
            "expires": {"N": str(int(clock.wall) + DAY)},
        }
    ]


def test_idempotency_key_is_free_again_after_a_day(
    clock: Clock, invocation: Invocation
) -> None:
    invocation.deadline += 2 * DAY
    catalogue.create_pet(REX, CALLER, "order-17")
    clock.advance(DAY - 1)
    assert catalogue.create_pet(REX, CALLER, "order-17") == ({"id": 6, **REX}, True)
    with pytest.raises(IdempotencyKeyReused):
        catalogue.create_pet(MIA, CALLER, "order-17")
    clock.advance(1)

    assert catalogue.create_pet(MIA, CALLER, "order-17") == ({"id": 9, **MIA}, False)


@pytest.mark.parametrize("key", [None, "order-17"])
@pytest.mark.parametrize("lost", [[], [LOST_REQUEST]])
def test_animal_under_the_same_id_is_never_overwritten(
    key: str | None, lost: list[Fault], store: FaultyStore
) -> None:
    catalogue.create_pet(MIA, CALLER, None)
    before = stored(store, "pet")
    counter = {"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": "5"}}
    tables = handlers.client(store.database)
    tables.put_item(TableName=handlers.ANIMALS, Item=counter)
    store.fail("TransactWriteItems" if key else "PutItem", *lost)

    with pytest.raises(RuntimeError, match=r"^the counter gave id 6, which is taken$"):
        catalogue.create_pet(REX, CALLER, key)

    assert stored(store, "pet") == before


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


@pytest.mark.parametrize(
    "codes",
    [(), ("ValidationError", "None"), ("None", "ItemCollectionSizeLimitExceeded")],
)
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
    assert "FilterExpression" not in parameters


def test_animal_is_read_consistently(store: FaultyStore) -> None:
    catalogue.get_pet(1)

    assert store.calls[0][1]["ConsistentRead"] is True


def test_calls_name_the_versions_of_sdk_and_python_and_the_service(
    store: FaultyStore,
) -> None:
    agents = []

    def note(attempt: Attempt) -> AWSResponse:
        request: Any = attempt.request
        agents.append(request.headers["User-Agent"].decode())
        return attempt.carry_out()

    store.fail("GetItem", note)

    catalogue.get_pet(1)

    sdk, python, *_, service = agents[0].split()
    assert sdk == f"Botocore/{botocore.__version__}"
    assert python == f"Python/{platform.python_version()}"
    assert service == "app/animal-store"
