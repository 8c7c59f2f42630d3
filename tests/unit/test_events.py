"""Each file of `events/` gets the response that its name promises, and that openapi.yaml declares, through faults too.

Every call of the store that the successful events make is forced through every kind of failure: an operation is tested
by having events, and a call by being made.
"""

import gc
import itertools
import json
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from animal_store import dynamodb

from tests.support import handlers, openapi
from tests.support.fault_injection import LOST_REQUEST, TRANSIENT, UNREADABLE, Fault, FaultyStore
from tests.support.handlers import EVENTS, SUCCESSES, Response
from tests.support.requests import Send
from tools.local.events import PETS

# Too large for a file, failures, and what API Gateway answers by itself.
WITHOUT_EVENT = {413, 429, 500, 502, 503, 504}
ATTEMPTS = 3


@pytest.mark.parametrize("operation", openapi.operations(), ids=lambda operation: operation.id)
@pytest.mark.usefixtures("store")
def test_events_show_each_status_of_an_operation_and_each_example_of_an_error(
    operation: openapi.Operation,
) -> None:
    names = [
        name for name, event in EVENTS.items() if handlers.operation_of(event).id == operation.id
    ]
    shown: dict[int, list[Any]] = {}
    # Twice, if that changes nothing: a creation with an Idempotency-Key is then a repeated one.
    for name in names * (1 if operation.method == "DELETE" else 2):
        response = handlers.invoke(EVENTS[name])

        assert f"-{response.status}" in name
        assert handlers.problems(EVENTS[name], response) == [], name
        shown.setdefault(response.status, []).append(response.body)

    assert shown.keys() == operation.statuses - WITHOUT_EVENT
    for status in [status for status in shown if status >= 400]:
        assert all(
            example in shown[status] for example in openapi.examples(operation.response(status))
        )


def test_an_animal_with_every_member_is_kept_whole(send: Send) -> None:
    members = openapi.schema("NewPet")["properties"]
    new: dict[str, Any] = {name: schema["examples"][0] for name, schema in members.items()}

    pet = send("create_pet", body=json.dumps(new)).body

    assert pet == {"id": 6, **new} == send("get_pet", pathParameters={"petId": "6"}).body
    assert pet in send("list_pets").body


def test_requests_leave_nothing_in_memory(store: FaultyStore) -> None:
    """Send every event again and again; count the blocks of memory that stay."""

    def blocks_after(rounds: int) -> int:
        for name in [*EVENTS] * rounds:
            handlers.invoke(EVENTS[name])
        for record in (store.sent, store.calls):
            record.clear()
        gc.collect()
        return sys.getallocatedblocks()

    before = blocks_after(15)  # until Python's own caches are full
    assert blocks_after(10) - before < 3 * 10 * len(
        EVENTS
    )  # whatever a request leaves is more than three blocks


def run(name: str, call: int = 0, *faults: Fault) -> tuple[Response, list[str], list[str]]:
    """Send an event, one of whose calls meets faults; return the response, what a new store keeps, and the calls."""
    store = FaultyStore(dynamodb.client, handlers.new_database(pets=True))
    store.fail(call, *faults)
    response = handlers.invoke(EVENTS[name])
    store.detach()
    assert store.invalid == []
    items = handlers.items(handlers.client(store.database))
    handlers.discard(store.database)
    state = sorted(str(steady(item)) for item in items if item["pk"]["S"] != "counter")
    return response, state, [operation for operation, _ in store.calls]


def steady(item: dict[str, Any]) -> list[Any]:
    """Leave out of an item what a lost attempt may change: ids above the first, tokens, times."""

    def changes(name: str, number: int) -> bool:
        return (
            name == "token"
            or number > 1_700_000_000
            or (name in {"id", "petId"} and number > len(PETS))
        )

    return [
        (name, changes(name, int(item[name].get("N", 0))) or item[name]) for name in sorted(item)
    ]


def without_id(response: Response) -> tuple[Any, ...]:
    return response.status, response.headers, re.sub(r'"id":\d+', "", response.text)


@pytest.mark.parametrize("name", SUCCESSES)
@pytest.mark.usefixtures("clock")
def test_each_failure_of_each_call(name: str, forget_keys: Callable[[], None]) -> None:
    """A failure is made up for, or the response is 503; and either all of the operation is done, or nothing."""
    good, done, calls = run(name)
    forget_keys()
    _, nothing, _ = run(name, 0, *[LOST_REQUEST] * ATTEMPTS)
    for call, (fault, fail), attempts in itertools.product(
        range(len(calls)), (TRANSIENT | UNREADABLE).items(), range(1, ATTEMPTS + 1)
    ):
        forget_keys()
        response, state, _ = run(name, call, *[fail] * attempts)

        context = f"{calls[call]} (call {call + 1}), {fault}, {attempts} times: {response}"
        assert handlers.problems(EVENTS[name], response) == [], context
        if response.status == good.status:
            assert (without_id(response), state) == (without_id(good), done), context
        else:
            assert response.status == 503, context
            assert state in (done, nothing), context
        if fault in TRANSIENT:
            assert response.status == (503 if attempts == ATTEMPTS else good.status), context
