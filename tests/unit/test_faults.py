"""The tests make each store call of a successful event fail.

A new operation or call is tested once a successful event uses it.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from tests.support import handlers
from tests.support.fault_injection import (
    DENIED,
    LOST_REQUEST,
    STORE,
    TRANSIENT,
    UNREADABLE,
    Attempt,
    Fault,
    after_execution,
    cancelled,
    die,
    error,
)
from tests.support.handlers import SUCCESSES, Response

pytestmark = pytest.mark.usefixtures("clock")

FAULTS = TRANSIENT | UNREADABLE
ALL_ATTEMPTS = 3
IDEMPOTENCY_KEY = {"Idempotency-Key": ["order-17"]}


def outcome(name: str, call: int, *faults: Fault) -> tuple[Response, list[str], Any]:
    """Reset; send an event. Its first `call` store requests succeed, the next get `faults`.

    Return the response (without an animal's id), the partitions of stored animals and records, and
    each request's operation and parameters.
    """
    plan = iter([Attempt.send_to_store] * call + [*faults])

    def answer_attempt(attempt: Attempt) -> AWSResponse:
        return next(plan, Attempt.send_to_store)(attempt)

    STORE.reset(answer_attempt)
    response = handlers.send(name)
    items = handlers.items()
    # Leave out ids and the counter: a failed creation may have raised or made the counter.
    stored = [item["pk"]["S"] for item in items if "value" not in item]
    without_id = replace(response, text=response.text.partition(",")[2])
    return without_id, stored, [*STORE.calls]


cached_outcome = cache(outcome)


@pytest.mark.parametrize("attempts", [1, ALL_ATTEMPTS])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", SUCCESSES)
def test_operation_is_atomic_if_dynamodb_fails(
    name: str, fault: str, attempts: int
) -> None:
    expected, items_after, calls = cached_outcome(name, 0)
    failure, items_before, _ = cached_outcome(name, 0, *[LOST_REQUEST] * ALL_ATTEMPTS)
    assert expected.status < 300
    assert calls
    for call in range(len(calls)):
        response, stored, _ = outcome(name, call, *[FAULTS[fault]] * attempts)

        if response.status == 503:
            assert attempts == ALL_ATTEMPTS or fault in UNREADABLE
            assert response == failure
            assert response.headers["Retry-After"] == "1"
            assert stored in (items_after, items_before)
        else:
            assert attempts < ALL_ATTEMPTS or fault in UNREADABLE
            assert (response, stored) == (expected, items_after)


# Maps the status of a response to two faults that lead to it: one of a single call, and one of a
# transaction.
REFUSALS = {
    500: (DENIED, cancelled("ValidationError")),
    503: (
        error(400, "TransactionConflictException"),
        cancelled("TransactionConflict"),
    ),
}


@pytest.mark.parametrize("status", REFUSALS)
@pytest.mark.parametrize("name", SUCCESSES)
def test_refused_call_to_dynamodb_writes_nothing(name: str, status: int) -> None:
    _, _, calls = cached_outcome(name, 0)
    _, items_before, _ = cached_outcome(name, 0, *[LOST_REQUEST] * ALL_ATTEMPTS)
    for call, (operation, _) in enumerate(calls):
        fault = REFUSALS[status][operation == "TransactWriteItems"]
        # The operation may repeat the call: each attempt is refused.
        response, stored, _ = outcome(name, call, *[fault] * 10)

        assert (response.status, stored) == (status, items_before)


@pytest.mark.parametrize("crash", [die, after_execution(die)])
@pytest.mark.parametrize("call", ["GetItem", "UpdateItem", "TransactWriteItems"])
def test_creation_repeated_after_a_crash_adds_one_animal(
    call: str, crash: Fault
) -> None:
    STORE.reset()
    STORE.fail(call, crash)
    with pytest.raises(SystemExit):
        handlers.send("create-201", IDEMPOTENCY_KEY)

    response = handlers.send("create-201", IDEMPOTENCY_KEY)

    assert response.status == 201
    assert handlers.send("list-200").body[5:] == [response.body]


@pytest.mark.parametrize("call", ["GetItem", "UpdateItem", "TransactWriteItems"])
def test_simultaneous_creations_with_one_key_add_one_animal(call: str) -> None:
    responses: list[Response] = []

    def create_meanwhile(attempt: Attempt) -> AWSResponse:
        responses.append(handlers.send("create-201", IDEMPOTENCY_KEY))
        return attempt.send_to_store()

    STORE.reset()
    STORE.fail(call, create_meanwhile)

    responses.append(handlers.send("create-201", IDEMPOTENCY_KEY))

    assert [response.status for response in responses] == [201, 201]
    assert handlers.send("list-200").body[5:] == [responses[0].body]
    assert responses[1].body == responses[0].body
