"""What is asked of DynamoDB, how often it is tried, when it is given up, and what is made of its answers.

Failures of each call, whatever it is, are in test_events.py. The store has the five animals of the events.
"""

import hashlib
import json
from typing import Any

import pytest
from animal_store import catalogue, dynamodb
from animal_store.auth import Caller
from animal_store.dynamodb import Invocation
from animal_store.errors import ServiceUnavailable
from animal_store.models import NewPet
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError, SSLError

from tests.support import fault_injection as faults
from tests.support import handlers
from tests.support.fault_injection import (
    LOST_REQUEST,
    Attempt,
    Fault,
    FaultyStore,
    answering,
    error,
    failing_with,
)
from tests.support.requests import Clock

pytestmark = pytest.mark.usefixtures("store", "invocation")

REX: NewPet = {"name": "Rex", "categoryId": 3, "status": "available"}
MIA: NewPet = {"name": "Mia", "categoryId": 2**63 - 1}
CALLER = Caller("0123456789abcdef" * 4, "unit tests")
DAY = 24 * 60 * 60
ATTEMPT = dynamodb._ATTEMPT_SECONDS
PAUSE = dynamodb._BACKOFF_SECONDS

# Those that every call is forced through (test_events.py), and others that the SDK tries again.
RETRIED = faults.TRANSIENT | {
    "connect timeout": failing_with(ConnectTimeoutError),
    "TLS": failing_with(SSLError, error=OSError("handshake")),
    "503": error(503, "ServiceUnavailable"),
    "500 of another name": error(500, "SomethingNewException"),
    "500 without a body": answering(500, b""),
    "502 of a proxy": answering(502, b"<html>Bad Gateway</html>"),
    **{
        code: error(400, code)
        for code in ("RequestLimitExceeded", "Throttling", "ThrottlingException")
    },
    "transaction in progress": error(400, "TransactionInProgressException"),
}
REFUSALS = ["AccessDeniedException", "ResourceNotFoundException", "ValidationException", "Other"]


@pytest.mark.parametrize(
    ("fault", "expected", "attempts"),
    [
        *(pytest.param(fault, ServiceUnavailable, 3, id=name) for name, fault in RETRIED.items()),
        pytest.param(failing_with(NoCredentialsError), ServiceUnavailable, 1, id="no credentials"),
        *(pytest.param(error(400, code), ClientError, 1, id=code) for code in REFUSALS),
    ],
)
def test_failure_is_retried_and_counted_or_told_as_it_is(
    fault: Fault,
    expected: type[Exception],
    attempts: int,
    store: FaultyStore,
    invocation: Invocation,
) -> None:
    store.fail("GetItem", *[fault] * 9)

    with pytest.raises(expected) as raised:
        catalogue.get_pet(17)

    assert invocation.calls == len(store.sent) == attempts
    assert (
        isinstance(raised.value, ClientError) or raised.value.__cause__ is not None
    )  # for the log


def asking_to_wait(milliseconds: str) -> Fault:
    """Throttle with the header by which AWS asks for a longer pause."""
    return answering(
        400, b'{"__type": "ThrottlingException"}', headers={"x-amz-retry-after": milliseconds}
    )


@pytest.mark.parametrize(
    ("before", "during", "fault", "attempts"),
    [
        (10 - ATTEMPT + 0.001, 0, LOST_REQUEST, 0),
        (10 - ATTEMPT, 0, LOST_REQUEST, 1),
        (0, 10 - PAUSE - ATTEMPT + 0.001, LOST_REQUEST, 1),
        (0, 10 - PAUSE - ATTEMPT, LOST_REQUEST, 2),
        *((0, 3, fault, 2) for fault in (LOST_REQUEST, faults.THROTTLED, faults.SERVER_ERROR)),
        *((0, 1.75, asking_to_wait(text), 3) for text in ("", "0", "soon")),
        (0, 0.5, asking_to_wait("1500"), 3),
        (0, 0.5, asking_to_wait("3000"), 2),
        (0, 0.5, asking_to_wait("600000"), 1),
    ],
)
def test_each_attempt_could_last_its_longest_within_the_invocation(
    before: float,
    during: float,
    fault: Fault,
    attempts: int,
    *,
    clock: Clock,
    store: FaultyStore,
    invocation: Invocation,
) -> None:
    started = []

    def slow(attempt: Attempt) -> Any:
        started.append(clock.uptime)
        clock.advance(during)
        return fault(attempt)

    clock.advance(before)
    store.fail("GetItem", *[slow] * 9)

    with pytest.raises(ServiceUnavailable) as raised:
        catalogue.get_pet(17)

    assert invocation.calls == len(started) == attempts
    assert all(moment <= invocation.deadline - ATTEMPT for moment in started)
    assert isinstance(raised.value.__cause__, TimeoutError) is (attempts == 0)


def test_client_has_the_timeouts_of_the_budget_and_names_the_service() -> None:
    config: Any = dynamodb.client.meta.config

    assert (dynamodb._CONNECT_SECONDS, dynamodb._READ_SECONDS) == (1, 2)
    assert (config.connect_timeout, config.read_timeout, config.user_agent) == (
        1,
        2,
        "animal-store/1.0",
    )


@pytest.mark.parametrize("operation", ["UpdateItem", "PutItem"])
def test_response_with_a_wrong_checksum_is_asked_for_again(
    operation: str, store: FaultyStore, invocation: Invocation
) -> None:
    store.fail(operation, answering(200, b"{}", crc32=1))

    catalogue.create_pet(REX, CALLER, None)

    assert invocation.calls == len(store.sent) == 3


def written(store: FaultyStore) -> list[dict[str, Any]]:
    """Read what the store has but for the counter and the animals of the events."""
    items = handlers.items(handlers.client(store.database))
    return [
        item for item in items if item["id"]["N"] not in "12345" and item["pk"]["S"] != "counter"
    ]


def cancelled(*codes: str) -> Any:
    return error(
        400, "TransactionCanceledException", CancellationReasons=[{"Code": code} for code in codes]
    )


@pytest.mark.parametrize("key", [None, "order-17"])
@pytest.mark.parametrize("lost", [[], [LOST_REQUEST]])
def test_animal_under_the_same_id_is_never_overwritten(
    key: str | None, lost: list[Fault], store: FaultyStore
) -> None:
    catalogue.create_pet(MIA, CALLER, None)
    before, counter = (
        written(store),
        {"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": "5"}},
    )
    handlers.client(store.database).put_item(TableName=handlers.ANIMALS, Item=counter)
    store.fail("TransactWriteItems" if key else "PutItem", *lost)

    with pytest.raises(RuntimeError, match=r"^the counter gave id 6, which is taken$"):
        catalogue.create_pet(REX, CALLER, key)

    assert written(store) == before


def test_key_is_kept_for_a_day_by_its_hash(
    clock: Clock, invocation: Invocation, store: FaultyStore
) -> None:
    catalogue.create_pet(REX, CALLER, "order-17")
    invocation.deadline += 2 * DAY

    assert next(item for item in written(store) if item["pk"]["S"] != "pet") == {
        "pk": {
            "S": "idempotency#" + hashlib.sha256(f"{CALLER.key_hash}#order-17".encode()).hexdigest()
        },
        "id": {"N": "0"},
        "petId": {"N": "6"},
        "fingerprint": {
            "S": hashlib.sha256(b'{"name":"Rex","categoryId":3,"status":"available"}').hexdigest()
        },
        "expires": {"N": str(int(clock.wall) + DAY)},
    }
    clock.advance(DAY - 1)
    assert catalogue.create_pet(REX, CALLER, "order-17").replayed
    clock.advance(1)
    assert catalogue.create_pet(MIA, CALLER, "order-17") == ({"id": 8, **MIA}, False)
    assert catalogue.create_pet(MIA, CALLER, "order-17") == ({"id": 8, **MIA}, True)


@pytest.mark.parametrize(
    "codes",
    [("None", "TransactionConflict"), ("ThrottlingError",), ("ProvisionedThroughputExceeded",)],
)
def test_transaction_that_may_succeed_later_is_tried_six_times(
    codes: tuple[str, ...], store: FaultyStore, clock: Clock
) -> None:
    store.fail("TransactWriteItems", *[cancelled(*codes)] * 11)

    with pytest.raises(ServiceUnavailable):
        catalogue.create_pet(REX, CALLER, "key")
    assert written(store) == []
    assert catalogue.create_pet(REX, CALLER, "key") == ({"id": 7, **REX}, False)

    assert store.sent.count("TransactWriteItems") == 12
    assert [pause > 0.05 * 2 ** (number % 5) for number, pause in enumerate(clock.pauses)] == [
        False
    ] * 10


@pytest.mark.parametrize(
    "codes", [(), ("ValidationError", "None"), ("None", "ItemCollectionSizeLimitExceeded")]
)
def test_transaction_cancelled_for_another_reason_is_told_as_it_is(
    codes: tuple[str, ...], store: FaultyStore
) -> None:
    store.fail("TransactWriteItems", cancelled(*codes))

    with pytest.raises(ClientError, match="TransactionCanceledException"):
        catalogue.create_pet(REX, CALLER, "key")

    assert store.sent.count("TransactWriteItems") == 1


@pytest.mark.parametrize(("status", "ids"), [(None, [2, 3]), ("available", [4])])
def test_page_is_one_consistent_query_that_reads_one_animal_more_than_it_shows(
    status: Any, ids: list[int], store: FaultyStore
) -> None:
    page = catalogue.list_pets(len(ids), status, after=1)

    assert ([pet["id"] for pet in page.pets], page.has_next) == (ids, status is None)
    ((operation, parameters),) = store.calls
    assert (operation, parameters["Limit"], "FilterExpression" in parameters) == (
        "Query",
        len(ids) + 1,
        False,
    )
    assert parameters.get("IndexName") == ("by-status" if status else None)
    assert parameters.get("ConsistentRead", False) is (status is None)  # an index cannot be
    catalogue.get_pet(1)
    assert store.calls[1][1]["ConsistentRead"] is True


def test_own_creation_is_not_a_replay_when_the_store_has_forgotten_its_token(
    store: FaultyStore,
) -> None:
    def repeated(attempt: Attempt) -> AWSResponse:
        attempt.carry_out()
        request: Any = attempt.request
        request.body = json.dumps(
            json.loads(request.body) | {"ClientRequestToken": "another"}
        ).encode()
        return attempt.carry_out()

    store.fail("TransactWriteItems", repeated)

    assert not catalogue.create_pet(REX, CALLER, "key").replayed
