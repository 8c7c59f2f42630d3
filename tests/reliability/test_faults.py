"""Every failure of every call of the store that the successful events make.

An operation is tested by having events, and a call by being made.
"""

from functools import cache
from typing import Any, NamedTuple

import pytest

from tests.support import handlers
from tests.support.fault_injection import (
    LOST_REQUEST,
    TRANSIENT,
    UNREADABLE,
    Fault,
    FaultyStore,
)
from tests.support.handlers import EVENTS, SUCCESSES, Response
from tools.local.events import PETS

FAULTS = TRANSIENT | UNREADABLE
ALL_ATTEMPTS = 3


class Outcome(NamedTuple):
    """What the client gets and what the store keeps, without a new animal's id; and the calls."""

    response: Response
    items: list[Any]
    calls: list[Any]


def run(name: str, call: int = 0, *faults: Fault) -> Outcome:
    """Send an event to a new execution environment and store; one of its calls meets faults."""
    from animal_store import dynamodb

    handlers.forget_keys()
    store = FaultyStore(dynamodb.client, handlers.new_database(pets=True))
    store.fail(call, *faults)
    response = handlers.invoke(EVENTS[name])
    store.detach()
    items = handlers.items(handlers.client(store.database))
    handlers.discard(store.database)
    if response.status == 201:
        # After the id.
        response = response._replace(text=response.text.partition(",")[2])
    return Outcome(
        response, sorted(map(without_what_varies, items), key=str), store.calls
    )


def without_what_varies(item: dict[str, Any]) -> dict[str, Any]:
    """Leave out of an item what differs when an attempt is repeated."""
    varies = {"token", "createdAt", "expires", "value"}
    kept = {name: value for name, value in item.items() if name not in varies}
    for name in ("id", "petId"):
        if name in kept and int(kept[name]["N"]) > len(PETS):
            kept[name] = "a new animal's"
    return kept


run_without_fault = cache(run)


@pytest.mark.parametrize("attempts", [1, 2, ALL_ATTEMPTS])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", SUCCESSES)
@pytest.mark.usefixtures("clock")
def test_failure_is_recovered_or_is_503_and_all_is_done_or_nothing(
    name: str, fault: str, attempts: int
) -> None:
    done = run_without_fault(name)
    nothing = run(name, 0, *[LOST_REQUEST] * ALL_ATTEMPTS)
    for call in range(len(done.calls)):
        outcome = run(name, call, *[FAULTS[fault]] * attempts)

        if outcome.response.status == 503:
            assert attempts == ALL_ATTEMPTS or fault in UNREADABLE
            assert handlers.problems(EVENTS[name], outcome.response) == []
            assert outcome.items in (done.items, nothing.items)
        else:
            assert attempts < ALL_ATTEMPTS or fault in UNREADABLE
            assert outcome[:2] == done[:2]
