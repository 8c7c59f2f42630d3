"""Calls to DynamoDB: stored items, attempts and time limits.

test_faults.py makes every call fail.
"""

import gc
import hashlib
import json
from typing import Any

import pytest
from animal_store import api_key

from tests.support import handlers
from tests.support.clock import Clock
from tests.support.fault_injection import (
    LOST_REQUEST,
    THROTTLED,
    UNREADABLE,
    Fault,
    FaultyStore,
    after_execution,
    answering,
    cancelled,
    error,
)
from tests.support.handlers import Response
from tools.key_table import EXAMPLE_KEY

pytestmark = pytest.mark.usefixtures("store")

MIA = {"name": "Mia", "categoryId": 2**63 - 1}
DAY_S = 24 * 60 * 60
CORRUPT = UNREADABLE["response with a wrong checksum"]
RETRY_AFTER_1500_MS = answering(
    400, b'{"__type": "Throttling"}', **{"x-amz-retry-after": "1500"}
)


def create(idempotency_key: str | None = None, name: str = "Mia") -> Response:
    """Send a request to create Mia, or an animal with another name."""
    headers = {"Idempotency-Key": [idempotency_key] if idempotency_key else []}
    body = json.dumps(MIA | {"name": name})
    return handlers.send("create-201", headers, body=body)


@pytest.mark.parametrize(
    ("fault", "seconds_left", "attempts", "pauses"),
    [
        (LOST_REQUEST, 3.499, 0, []),
        (LOST_REQUEST, 3.5, 1, []),
        (LOST_REQUEST, 5.499, 1, []),
        # 3.5 s for an attempt, and 2 s for a pause (the SDK's first: up to 25 ms)
        (LOST_REQUEST, 5.5, 2, [pytest.approx(0.0125, abs=0.0125)]),
        (RETRY_AFTER_1500_MS, 6.999, 1, []),
        (RETRY_AFTER_1500_MS, 7, 2, [1.5]),
        # CORRUPT's `{}` would mean an unknown API key, but its checksum is wrong.
        (CORRUPT, 5.499, 1, []),
        (CORRUPT, 10, 3, [0.1, 0.1]),
    ],
)
def test_call_is_made_only_if_it_can_end_in_time(
    fault: Fault,
    seconds_left: float,
    attempts: int,
    pauses: list[float],
    *,
    store: FaultyStore,
    clock: Clock,
) -> None:
    store.fail("GetItem", fault, fault, fault)

    response = handlers.send("list-200", seconds=seconds_left)

    assert response.status == 503
    assert (len(store.calls), clock.pauses) == (attempts, pauses)


def test_connecting_times_out_after_1_s_and_reading_after_2_s() -> None:
    # Import it only now: the fixture has set the functions' variables.
    from animal_store import dynamodb

    config: Any = dynamodb.client.meta.config
    assert (config.connect_timeout, config.read_timeout) == (1, 2)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("InvalidSignatureException", 503),
        ("RequestTimeTooSkewed", 503),
        ("UnrecognizedClientException", 500),
    ],
)
def test_request_with_a_refused_signature_is_sent_once_more(
    code: str, status: int, store: FaultyStore
) -> None:
    refused = error(400, code)
    store.fail("GetItem", THROTTLED, refused)
    store.fail("Query", refused, refused, refused)

    assert handlers.send("list-200").status == status
    assert len(store.calls) == 3 + 2


def test_unreadable_animal_is_named_in_the_log(store: FaultyStore) -> None:
    store.fail("Query", answering(200, b'{"Items": [{"id": {"N": "3"}}]}'))

    failure, _ = handlers.send("list-200").lines

    assert "cannot read: [{'N': '3'}]" in failure["exception"]


def test_garbage_collector_is_on_after_importing_the_layer() -> None:
    assert gc.isenabled()


def test_key_is_cached_and_unfiltered_reads_are_consistent(store: FaultyStore) -> None:
    handlers.send("get-200")
    handlers.send("list-200")  # the layer has cached the key by now

    assert [call["ConsistentRead"] for _, call in store.calls] == [True, True, True]


def test_creation_stores_animal_and_idempotency_record(clock: Clock) -> None:
    caller = api_key.digest(EXAMPLE_KEY)
    key = hashlib.sha256(f"{caller}#pet#order-17".encode()).hexdigest()

    create("order-17")

    assert handlers.items("pet")[-1] == {
        "pk": {"S": "pet"},
        "id": {"N": "6"},
        "name": {"S": "Mia"},
        "categoryId": {"N": "9223372036854775807"},
        "createdBy": {"S": caller[:12]},
        "createdAt": {"N": str(int(clock.wall))},
    }
    assert handlers.items("idempotency") == [
        {
            "pk": {"S": f"idempotency#{key}"},
            "id": {"N": "0"},
            "createdId": {"N": "6"},
            # SHA-256 of {"name":"Mia","categoryId":9223372036854775807}
            "fingerprint": {
                "S": "4a6a837b6fd89f97e57afe56f7b07eaa6bb28d6f18d7159e6458e97c3f7b0464"
            },
            "expires": {"N": str(int(clock.wall) + DAY_S)},
        }
    ]


def test_idempotency_key_can_be_reused_after_a_day(clock: Clock) -> None:
    create("order-17")
    clock.advance(DAY_S - 1)
    assert create("order-17").body == {"id": 6, **MIA}
    clock.advance(1)

    response = create("order-17", name="Rex")

    assert response.body == {"id": 8, **MIA, "name": "Rex"}
    assert "Idempotency-Replayed" not in response.headers


@pytest.mark.parametrize(
    ("last_id", "idempotency_key", "cause"),
    [
        (-1, None, "'Attributes', 'value'"),
        (2**63 - 1, None, "'Attributes', 'value'"),
        (4, None, "the counter gave id 5, which is taken"),
        (4, "order-17", "the counter gave id 5, which is taken"),
    ],
)
def test_wrong_counter_leads_to_500_and_changes_no_animal(
    last_id: int, idempotency_key: str | None, cause: str
) -> None:
    counter = {"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": str(last_id)}}
    handlers.sdk().put_item(TableName=handlers.ANIMALS, Item=counter)
    pets = handlers.items("pet")

    response = create(idempotency_key)

    assert response.status == 500
    assert cause in response.log
    assert handlers.items("pet") == pets


def test_cancelled_transaction_is_sent_six_times(
    store: FaultyStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.uniform", lambda a, b: (a + b) / 2)
    store.fail(
        "TransactWriteItems",
        cancelled("None", "TransactionConflict"),
        cancelled("ThrottlingError"),
        *[cancelled("ProvisionedThroughputExceeded")] * 4,
    )

    assert create("order-17").status == 503
    assert [name for name, _ in store.calls[2:]] == ["TransactWriteItems"] * 6
    assert clock.pauses == [0.025, 0.05, 0.1, 0.2, 0.4]  # half of the longest ones


def test_creation_that_was_stored_despite_an_error_is_no_replay(
    store: FaultyStore,
) -> None:
    store.fail("TransactWriteItems", after_execution(cancelled("ThrottlingError")))

    response = create("order-17")

    assert response.body == {"id": 6, **MIA}
    assert "Idempotency-Replayed" not in response.headers
