"""Every call of the store that a function makes is forced through every kind of failure.

The calls are those that the successful events of `events/` make: an operation is tested by having events, and a call by
being made.
"""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from animal_store import dynamodb

from tests import functions
from tests.fault_injection import LOST_REQUEST, TRANSIENT, UNREADABLE, Fault, Wire
from tests.functions import EVENTS, SUCCESSES, Response
from tools.local.dynamodb import Database

ATTEMPTS = 3
NOW = 1_700_000_000
Run = Callable[..., tuple[Response, list[str], list[str]]]


@pytest.fixture
def run(fresh: Callable[[], None], clock: object) -> Run:  # noqa: ARG001 - nobody waits for retries
    """Give what sends an event, whose calls meet faults, to a function in a new environment with a new store."""

    def send(name: str, call: int = 0, *faults: Fault) -> tuple[Response, list[str], list[str]]:
        fresh()
        database = functions.new_database(pets=True)
        wire = Wire(dynamodb.client, database)
        wire.fail(call, *faults)
        response = functions.invoke(EVENTS[name])
        wire.detach()
        assert wire.invalid == []
        state = kept(database)
        functions.discard(database)
        return response, state, [operation for operation, _ in wire.calls]

    return send


def kept(database: Database) -> list[str]:
    """Write down what a store keeps, but for what a lost attempt may change: ids above the first, tokens, times."""

    def steady(name: str, value: Any) -> Any:
        number = int(value.get("N", 0))
        changes = name == "token" or number > NOW or (name in {"id", "petId"} and number > len(functions.PETS))
        return "another" if changes else value

    items = functions.items(functions.client(database))
    return sorted(
        str({name: steady(name, item[name]) for name in sorted(item)}) for item in items if item["pk"]["S"] != "counter"
    )


def without_id(response: Response) -> tuple[Any, ...]:
    body = response.body
    return response.status, response.headers, {**body, "id": 0} if isinstance(body, dict) else body


@pytest.mark.parametrize("name", SUCCESSES)
def test_each_failure_of_each_call(name: str, run: Run) -> None:
    """A failure is made up for, or the response is 503; and either all of the operation is done, or nothing."""
    good, done, calls = run(name)
    _, nothing, _ = run(name, 0, *[LOST_REQUEST] * ATTEMPTS)
    for call, (fault, fail), attempts in itertools.product(
        range(len(calls)), (TRANSIENT | UNREADABLE).items(), range(1, ATTEMPTS + 1)
    ):
        response, state, _ = run(name, call, *[fail] * attempts)

        context = f"{calls[call]} (call {call + 1}), {fault}, {attempts} times: {response}"
        assert functions.problems(EVENTS[name], response) == [], context
        if response.status == good.status:
            assert without_id(response) == without_id(good), context
            assert state == done, context
        else:
            assert response.status == 503, context
            assert state in (done, nothing), context
        if fault in TRANSIENT:
            assert response.status == (503 if attempts == ATTEMPTS else good.status), context
