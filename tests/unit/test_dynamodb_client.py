"""Calls to DynamoDB: stored items, attempts and time limits.

test_faults.py has every failure of every call.
"""

import gc
import hashlib
import json
from typing import Any
from unittest import mock

import pytest
from animal_store import api_key
from botocore.awsrequest import AWSResponse
from botocore.httpsession import URLLib3Session

from tests.support import handlers
from tests.support.clock import Clock
from tests.support.fault_injection import (
    LOST_REQUEST,
    THROTTLED,
    UNREADABLE,
    Attempt,
    Fault,
    FaultyStore,
    answering,
    cancelled,
    error,
)
from tests.support.handlers import Response
from tests.support.in_process import layer_copy
from tools.key_table import EXAMPLE_KEY

pytestmark = pytest.mark.usefixtures("store")

MIA = {"name": "Mia", "categoryId": 2**63 - 1}
DAY_S = 24 * 60 * 60
CORRUPT = UNREADABLE["response of another checksum"]
RETRY_AFTER_1500_MS = answering(
    400, b'{"__type": "Throttling"}', **{"x-amz-retry-after": "1500"}
)


def create(idempotency_key: str | None = None, name: str = "Mia") -> Response:
    """Send a request to create Mia, or an animal with another name."""
    headers = {"Idempotency-Key": [idempotency_key] if idempotency_key else []}
    body = json.dumps(MIA | {"name": name})
    return handlers.send("create-201", headers, body=body)


def set_counter(last_id: int) -> None:
    """Set the last id assigned, so that the next creation gets the id after it."""
    counter = {"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": str(last_id)}}
    handlers.sdk().put_item(TableName=handlers.ANIMALS, Item=counter)


@pytest.mark.parametrize(
    ("fault", "seconds_left", "attempts", "pauses"),
    [
        (LOST_REQUEST, 3.499, 0, []),
        (LOST_REQUEST, 3.5, 1, []),
        (LOST_REQUEST, 5.499, 1, []),
        (LOST_REQUEST, 5.5, 2, [0.025]),  # 3.5 s and a pause of up to 2 s
        (RETRY_AFTER_1500_MS, 6.999, 1, []),
        (RETRY_AFTER_1500_MS, 7, 2, [1.5]),
        # It says that the key is unknown, but its checksum is wrong.
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


def test_client_has_both_timeouts() -> None:
    with layer_copy(), mock.patch.object(URLLib3Session, "__init__") as init:
        init.return_value = None
        handlers.service().gateway()

    assert init.call_args.kwargs["timeout"] == (1, 2)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("InvalidSignatureException", 503),
        ("RequestTimeTooSkewed", 503),
        ("UnrecognizedClientException", 500),
    ],
)
def test_refused_signature_is_sent_again_once(
    code: str, status: int, store: FaultyStore
) -> None:
    refused = error(400, code)
    store.fail("GetItem", THROTTLED, refused)
    store.fail("Query", refused, refused, refused)

    assert handlers.send("list-200").status == status
    assert len(store.calls) == 3 + 2


def test_unreadable_animal_is_named_in_the_log() -> None:
    nameless_pet = {"pk": {"S": "pet"}, "id": {"N": "3"}}
    handlers.sdk().put_item(TableName=handlers.ANIMALS, Item=nameless_pet)

    failure, _ = handlers.send("list-200").lines

    assert "cannot read: [{'N': '3'}]" in failure["exception"]


def test_garbage_collector_is_on_after_the_start() -> None:
    assert gc.isenabled()


@pytest.mark.parametrize("name", ["get-200", "list-200"])
def test_key_and_animals_take_one_consistent_read_each(
    name: str, store: FaultyStore
) -> None:
    handlers.send(name)

    assert [call["ConsistentRead"] for _, call in store.calls] == [True, True]


def test_creation_stores_animal_and_idempotency_record(
    clock: Clock,
) -> None:
    caller = api_key.digest(EXAMPLE_KEY)
    key = hashlib.sha256(f"{caller}#pet#order-17".encode()).hexdigest()
    body = b'{"name":"Mia","categoryId":9223372036854775807}'

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
            "fingerprint": {"S": hashlib.sha256(body).hexdigest()},
            "expires": {"N": str(int(clock.wall) + DAY_S)},
        }
    ]


def test_idempotency_key_can_be_reused_after_a_day(
    clock: Clock,
) -> None:
    create("order-17")
    clock.advance(DAY_S - 1)
    assert create("order-17").body == {"id": 6, **MIA}
    clock.advance(1)

    response = create("order-17", name="Rex")

    assert response.body == {"id": 8, **MIA, "name": "Rex"}
    assert "Idempotency-Replayed" not in response.headers


@pytest.mark.parametrize("last_id", [-1, 2**63 - 1])
def test_counter_out_of_range_leads_to_500(last_id: int) -> None:
    set_counter(last_id)

    assert create().status == 500
    assert len(handlers.items("pet")) == 5


@pytest.mark.parametrize("idempotency_key", [None, "order-17"])
def test_taken_id_leads_to_500_and_overwrites_nothing(
    idempotency_key: str | None,
) -> None:
    set_counter(4)

    response = create(idempotency_key)

    assert response.status == 500
    assert "the counter gave id 5, which is taken" in response.log
    assert handlers.items("pet")[4]["name"] != {"S": "Mia"}


def test_cancelled_transaction_is_sent_six_times(
    store: FaultyStore, clock: Clock
) -> None:
    store.fail(
        "TransactWriteItems",
        cancelled("None", "TransactionConflict"),
        cancelled("ThrottlingError"),
        *[cancelled("ProvisionedThroughputExceeded")] * 4,
    )

    assert create("order-17").status == 503
    assert [name for name, _ in store.calls[2:]] == ["TransactWriteItems"] * 6
    for pause, longest in zip(clock.pauses, [0.05, 0.1, 0.2, 0.4, 0.8], strict=True):
        assert 0 < pause < longest


def test_sdk_retry_with_another_token_is_no_replay(
    store: FaultyStore,
) -> None:
    def carry_out_with_two_tokens(attempt: Attempt) -> AWSResponse:
        attempt.carry_out()
        request: Any = attempt.request
        request.body = request.body.replace(b'Token": "', b'Token": "another')
        return attempt.carry_out()

    store.fail("TransactWriteItems", carry_out_with_two_tokens)

    response = create("order-17")

    assert response.body == {"id": 6, **MIA}
    assert "Idempotency-Replayed" not in response.headers
