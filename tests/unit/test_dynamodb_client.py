"""What DynamoDB is asked, how often, until when, and what is made of its answers.

Failures of each call, whatever it is, are in reliability/test_faults.py.
"""

import hashlib
import json
from typing import Any

import pytest
from animal_store import api_key, dynamodb
from botocore.awsrequest import AWSResponse
from botocore.exceptions import NoCredentialsError, SSLError

from tests.support import handlers
from tests.support.clock import Clock
from tests.support.fault_injection import (
    LOST_REQUEST,
    Attempt,
    Fault,
    FaultyStore,
    answering,
    cancelled,
    error,
    failing_with,
)
from tests.support.handlers import EVENTS, Response
from tests.support.openapi import STATUSES
from tools.local.events import EXAMPLE_KEY

pytestmark = pytest.mark.usefixtures("store")

REX = {"name": "Rex", "categoryId": 3, "status": STATUSES[0]}
MIA = {"name": "Mia", "categoryId": 2**63 - 1}
CALLER = api_key.digest(EXAMPLE_KEY)
DAY = 24 * 60 * 60


def create(new: dict[str, Any], key: str | None = None) -> Response:
    """Send a creation, with an Idempotency-Key or without."""
    headers = {"Idempotency-Key": [key] if key else []}
    return handlers.send("create-201", headers=headers, body=json.dumps(new))


@pytest.mark.parametrize(
    ("fault", "status", "attempts"),
    [
        (failing_with(SSLError, error="handshake"), 503, 3),
        (failing_with(NoCredentialsError), 503, 1),
        (error(500, "SomethingNewException"), 503, 3),
        (error(400, "ProvisionedThroughputExceededException"), 503, 3),
        (error(400, "RequestLimitExceeded"), 503, 3),
        (error(400, "Throttling"), 503, 3),
        (error(400, "ThrottlingException"), 503, 3),
        (error(400, "TransactionInProgressException"), 503, 3),
        (error(400, "ValidationException"), 500, 1),
    ],
)
def test_failure_is_retried_if_another_attempt_may_succeed(
    fault: Fault, status: int, attempts: int, store: FaultyStore
) -> None:
    store.fail("Query", fault, fault, fault)

    assert handlers.send("list-200").status == status
    assert store.sent == ["GetItem"] + ["Query"] * attempts


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
    fault: Fault, seconds_left: float, attempts: int, store: FaultyStore
) -> None:
    store.fail("GetItem", fault, fault, fault)

    response = handlers.invoke(EVENTS["list-200"], seconds_left)

    assert response.status == 503
    assert len(store.sent) == attempts


def test_client_has_the_timeouts_of_the_deadlines_and_names_sdk_and_service() -> None:
    config: Any = dynamodb.client.meta.config

    assert (config.connect_timeout, config.read_timeout) == (1, 2)
    assert config.user_agent.startswith("Botocore/")
    assert config.user_agent.endswith(" app/animal-store")


def test_animal_is_stored_with_who_added_it_and_its_key_for_a_day(
    clock: Clock,
) -> None:
    key = hashlib.sha256(f"{CALLER}#order-17".encode()).hexdigest()
    body = b'{"name":"Mia","categoryId":9223372036854775807}'

    create(MIA, "order-17")

    assert handlers.items("pet")[-1] == {
        "pk": {"S": "pet"},
        "id": {"N": "6"},
        "name": {"S": "Mia"},
        "categoryId": {"N": "9223372036854775807"},
        "createdBy": {"S": CALLER[:12]},
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
    create(REX, "order-17")
    clock.advance(DAY - 1)
    again = create(REX, "order-17")
    assert again.body == {"id": 6, **REX}
    assert again.headers["Idempotency-Replayed"] == "true"
    assert create(MIA, "order-17").status == 422
    clock.advance(1)

    later = create(MIA, "order-17")

    assert later.body == {"id": 9, **MIA}
    assert "Idempotency-Replayed" not in later.headers


@pytest.mark.parametrize("key", [None, "order-17"])
def test_animal_under_the_same_id_is_never_overwritten(
    key: str | None, output: pytest.CaptureFixture[str]
) -> None:
    before = handlers.pets()
    counter = {"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": "4"}}
    handlers.ask("PutItem", handlers.ANIMALS, Item=counter)

    assert create(REX, key).status == 500
    assert "the counter gave id 5, which is taken" in output.readouterr().out
    assert handlers.pets() == before


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

    assert create(REX, "key").status == 503
    assert store.sent == ["GetItem", "UpdateItem"] + ["TransactWriteItems"] * 6
    for pause, longest in zip(clock.pauses, [0.05, 0.1, 0.2, 0.4, 0.8], strict=True):
        assert pause <= longest


@pytest.mark.parametrize("codes", [(), ("ValidationError", "None")])
def test_transaction_cancelled_for_another_reason_is_not_tried_again(
    codes: tuple[str, ...], store: FaultyStore
) -> None:
    store.fail("TransactWriteItems", cancelled(*codes))

    assert create(REX, "key").status == 500
    assert store.sent == ["GetItem", "UpdateItem", "TransactWriteItems"]


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

    response = create(REX, "key")

    assert response.body == {"id": 6, **REX}
    assert "Idempotency-Replayed" not in response.headers


@pytest.mark.parametrize(
    ("status", "ids", "query"),
    [
        ([], [1, 2], {"Limit": 3, "ConsistentRead": True}),
        (STATUSES[:1], [1, 4], {"Limit": 3, "IndexName": "by-status"}),
    ],
)
def test_page_is_one_query_that_reads_one_animal_more_than_it_shows(
    status: list[str], ids: list[int], query: dict[str, Any], store: FaultyStore
) -> None:
    parameters = {"limit": ["2"], "status": status}

    response = handlers.send("list-200", multiValueQueryStringParameters=parameters)

    assert [pet["id"] for pet in response.body] == ids
    assert ("Link" in response.headers) is (status == [])
    _, (operation, asked) = store.calls
    assert operation == "Query"
    assert asked.items() >= query.items()
