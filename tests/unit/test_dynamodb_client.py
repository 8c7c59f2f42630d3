"""Calls to DynamoDB: parameters, attempts, deadlines and how responses are read.

Failures of each call, whatever it is, are in reliability/test_faults.py.
"""

import hashlib
import json
from typing import Any

import pytest
from animal_store import api_key, dynamodb
from botocore.awsrequest import AWSResponse
from botocore.exceptions import NoCredentialsError

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
from tools.key_table import EXAMPLE_KEY

pytestmark = pytest.mark.usefixtures("store")

MIA = {"name": "Mia", "categoryId": 2**63 - 1}
CALLER = api_key.digest(EXAMPLE_KEY)
DAY = 24 * 60 * 60


def create(key: str | None = None, **members: str) -> Response:
    """Send a creation, with an Idempotency-Key or without."""
    headers = {"Idempotency-Key": [key] if key else []}
    return handlers.send("create-201", headers=headers, body=json.dumps(MIA | members))


@pytest.mark.parametrize(
    "fault",
    [
        failing_with(NoCredentialsError),
        error(500, "SomethingNewException"),
        error(400, "RequestLimitExceeded"),
        error(400, "ThrottlingException"),
        error(400, "TransactionInProgressException"),
    ],
)
def test_failure_that_may_pass_is_503(fault: Fault, store: FaultyStore) -> None:
    store.fail("Query", fault, fault, fault)

    assert handlers.send("list-200").status == 503


def asking_to_wait(milliseconds: str) -> Fault:
    """Throttle with the header by which AWS asks for a longer pause."""
    return answering(400, b'{"__type": "Throttling"}', x_amz_retry_after=milliseconds)


@pytest.mark.parametrize(
    ("fault", "seconds_left", "attempts", "pauses"),
    [
        (LOST_REQUEST, 3.499, 0, []),
        (LOST_REQUEST, 3.5, 1, []),
        (LOST_REQUEST, 5.499, 1, []),
        (LOST_REQUEST, 5.5, 2, [0.025]),  # 2 seconds may pass before another attempt
        (asking_to_wait("soon"), 6.5, 3, [1, 2]),
        (asking_to_wait("1500"), 6.999, 1, []),
        (asking_to_wait("1500"), 7, 2, [1.5]),
        (asking_to_wait("600000"), 10.499, 1, []),
        (asking_to_wait("600000"), 10.5, 2, [6]),  # the SDK adds 5 at most
    ],
)
def test_attempt_is_made_if_it_can_end_within_the_invocation(
    fault: Fault,
    seconds_left: float,
    attempts: int,
    pauses: list[float],
    *,
    store: FaultyStore,
    clock: Clock,
) -> None:
    store.fail("GetItem", fault, fault, fault)

    response = handlers.invoke(EVENTS["list-200"], seconds_left)

    assert response.status == 503
    assert (len(store.calls), clock.pauses) == (attempts, pauses)


def test_client_timeouts_match_the_constants() -> None:
    config: Any = dynamodb.client.meta.config

    assert (config.connect_timeout, config.read_timeout) == (1, 2)


def test_creation_stores_its_caller_and_an_idempotency_record_for_a_day(
    clock: Clock,
) -> None:
    key = hashlib.sha256(f"{CALLER}#pet#order-17".encode()).hexdigest()
    body = b'{"name":"Mia","categoryId":9223372036854775807}'

    create("order-17")

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
            "createdId": {"N": "6"},
            "fingerprint": {"S": hashlib.sha256(body).hexdigest()},
            "expires": {"N": str(int(clock.wall) + DAY)},
        }
    ]


def test_idempotency_key_is_free_again_after_a_day(clock: Clock) -> None:
    create("order-17")
    clock.advance(DAY - 1)
    assert create("order-17").body == {"id": 6, **MIA}
    clock.advance(1)

    later = create("order-17", name="Rex")

    assert later.body == {"id": 8, **MIA, "name": "Rex"}
    assert "Idempotency-Replayed" not in later.headers


def set_counter(value: str) -> None:
    """Let the counter say that this id was the last."""
    counter = {"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": value}}
    handlers.ask("PutItem", handlers.ANIMALS, Item=counter)


@pytest.mark.parametrize("key", [None, "order-17"])
@pytest.mark.parametrize("last_id", ["-1", "-4", str(2**63 - 1)])
def test_counter_that_gives_no_id_is_500_and_nothing_is_written(
    last_id: str, key: str | None, output: pytest.CaptureFixture[str]
) -> None:
    set_counter(last_id)
    before = [item for item in handlers.items() if "value" not in item]

    assert create(key).status == 500
    assert "'Attributes', 'value', 'N'" in output.readouterr().out
    assert [item for item in handlers.items() if "value" not in item] == before


@pytest.mark.parametrize("key", [None, "order-17"])
def test_animal_under_the_same_id_is_never_overwritten(
    key: str | None, output: pytest.CaptureFixture[str]
) -> None:
    create()
    before = handlers.pets()
    set_counter("5")

    assert create(key, name="Rex").status == 500
    assert "the counter gave id 6, which is taken" in output.readouterr().out
    assert handlers.pets() == before


@pytest.mark.parametrize(
    "codes",
    [
        ("None", "TransactionConflict"),
        ("ThrottlingError",),
        ("ProvisionedThroughputExceeded",),
    ],
)
def test_transaction_that_may_succeed_later_is_tried_six_times_after_pauses(
    codes: tuple[str, ...], store: FaultyStore, clock: Clock
) -> None:
    store.fail("TransactWriteItems", *[cancelled(*codes)] * 6)

    assert create("key").status == 503
    assert [name for name, _ in store.calls[2:]] == ["TransactWriteItems"] * 6
    for pause, longest in zip(clock.pauses, [0.05, 0.1, 0.2, 0.4, 0.8], strict=True):
        assert 0 < pause < longest


THROTTLING_REASON = {
    "reason": "TableWriteMaxOnDemandThroughputExceeded",
    "resource": "arn:aws:dynamodb:eu-central-1:123456789012:table/animals",
}
THROTTLED_PART = {"Code": "ThrottlingError", "Message": "Throughput exceeds ..."}


@pytest.mark.parametrize(
    ("call", "fault", "cause"),
    [
        (
            "TransactWriteItems",
            error(
                400,
                "TransactionCanceledException",
                CancellationReasons=[{"Code": "None"}, THROTTLED_PART],
            ),
            "ThrottlingError: Throughput exceeds ...",
        ),
        (
            "TransactWriteItems",
            error(
                400,
                "ProvisionedThroughputExceededException",
                ThrottlingReasons=[THROTTLING_REASON],
            ),
            "TableWriteMaxOnDemandThroughputExceeded",
        ),
        (
            "UpdateItem",
            error(400, "ThrottlingException", throttlingReasons=[THROTTLING_REASON]),
            "TableWriteMaxOnDemandThroughputExceeded",
        ),
    ],
)
def test_throttled_creation_logs_the_limit_that_was_reached(
    call: str,
    fault: Fault,
    cause: str,
    *,
    store: FaultyStore,
    output: pytest.CaptureFixture[str],
) -> None:
    store.fail(call, *[fault] * 6)

    assert create("order-17").status == 503

    failure, _ = map(json.loads, output.readouterr().out.splitlines())
    assert cause in failure["exception"]


def test_retry_after_the_sdk_token_expired_is_not_reported_as_replayed(
    store: FaultyStore,
) -> None:
    def carry_out_twice(attempt: Attempt) -> AWSResponse:
        attempt.carry_out()
        request: Any = attempt.request
        request.body = request.body.replace(b'Token": "', b'Token": "another')
        return attempt.carry_out()

    store.fail("TransactWriteItems", carry_out_twice)

    response = create("key")

    assert response.body == {"id": 6, **MIA}
    assert "Idempotency-Replayed" not in response.headers


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("get-200", {"ConsistentRead": True}),
        # One animal more than is shown tells whether a page follows.
        ("list-200", {"ConsistentRead": True, "Limit": 21}),
        ("list-200-filtered", {"IndexName": "by-status"}),
    ],
)
def test_read_is_one_call_after_the_look_up_of_the_key(
    name: str, parameters: dict[str, Any], store: FaultyStore
) -> None:
    handlers.send(name)

    (_, key_parameters), (_, read_parameters) = store.calls
    assert key_parameters["ConsistentRead"] is True
    assert read_parameters.items() >= parameters.items()
