"""Every failure of every call of the store that the successful events make.

An operation is tested by having events, and a call by being made.
"""

from contextlib import closing
from functools import cache
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from tests.support import handlers
from tests.support.clock import install_clock
from tests.support.fault_injection import (
    DENIED,
    LOST_REQUEST,
    TRANSIENT,
    UNREADABLE,
    Attempt,
    Fault,
    FaultyStore,
    cancelled,
    error,
)
from tests.support.handlers import SUCCESSES, Response

FAULTS = TRANSIENT | UNREADABLE
ALL_ATTEMPTS = 3


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    install_clock(monkeypatch)


def run(name: str, call: int, *faults: Fault) -> tuple[Response, list[str], Any]:
    """Send an event to a new environment and store, where requests meet faults from a call on.

    Return the response without the id of an animal, what is stored by its partitions, and the
    requests, each an operation and its parameters.
    """
    plan = iter([Attempt.carry_out] * call + [*faults])

    def meet(attempt: Attempt) -> AWSResponse | None:
        return next(plan, Attempt.carry_out)(attempt)

    with closing(FaultyStore(meet)) as store:
        response = handlers.send(name)
        items = handlers.items()
    # A failed creation leaves a gap in the ids, and may have made the counter.
    stored = [item["pk"]["S"] for item in items if "value" not in item]
    without_id = response._replace(text=response.text.partition(",")[2])
    return without_id, stored, store.calls


run_once = cache(run)


@pytest.mark.parametrize("attempts", [1, ALL_ATTEMPTS])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", SUCCESSES)
def test_operation_succeeds_or_answers_503_and_is_atomic(
    name: str, fault: str, attempts: int
) -> None:
    expected, done, calls = run_once(name, 0)
    failure, nothing, _ = run_once(name, 0, *[LOST_REQUEST] * ALL_ATTEMPTS)
    for call in range(len(calls)):
        response, stored, _ = run(name, call, *[FAULTS[fault]] * attempts)

        if response.status == 503:
            assert attempts == ALL_ATTEMPTS or fault in UNREADABLE
            assert response == failure
            assert response.headers["Retry-After"] == "1"
            assert stored in (done, nothing)
        else:
            assert attempts < ALL_ATTEMPTS or fault in UNREADABLE
            assert (response, stored) == (expected, done)


# What the store answers when it was asked in vain: by call, or by parts of a transaction.
REFUSALS = {500: (DENIED, cancelled("ValidationError"))}
REFUSALS[503] = (
    error(400, "TransactionConflictException"),
    cancelled("TransactionConflict"),
)


@pytest.mark.parametrize("status", REFUSALS)
@pytest.mark.parametrize("name", SUCCESSES)
def test_refusal_answers_500_or_503_and_writes_nothing(name: str, status: int) -> None:
    _, _, calls = run_once(name, 0)
    _, nothing, _ = run_once(name, 0, *[LOST_REQUEST] * ALL_ATTEMPTS)
    for call, (operation, _) in enumerate(calls):
        fault = REFUSALS[status][operation == "TransactWriteItems"]
        # However often the operation makes the call again.
        response, stored, _ = run(name, call, *[fault] * 10)

        assert (response.status, stored) == (status, nothing)
