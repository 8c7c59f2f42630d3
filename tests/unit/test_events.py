"""Each file of `events/` gets the response that its name promises, and the one that openapi.yaml declares."""

import gc
import json
import sys
from typing import Any

import pytest

from tests import functions, openapi
from tests.fault_injection import Wire
from tests.functions import EVENTS

# Too large for a file, failures, and what API Gateway answers by itself.
WITHOUT_EVENT = {413, 429, 500, 502, 503, 504}

pytestmark = pytest.mark.usefixtures("wire")


@pytest.mark.parametrize("operation", openapi.operations(), ids=lambda operation: operation.id)
def test_events_show_each_status_of_an_operation_and_each_example_of_an_error(operation: openapi.Operation) -> None:
    names = [name for name, event in EVENTS.items() if functions.operation_of(event).id == operation.id]
    shown: dict[int, list[Any]] = {}
    for name in [*names, *names]:  # twice: a creation with an Idempotency-Key is then a repeated one
        response = functions.invoke(EVENTS[name])

        assert f"-{response.status}" in name
        assert functions.problems(EVENTS[name], response) == [], name
        shown.setdefault(response.status, []).append(response.body)

    assert shown.keys() == operation.statuses - WITHOUT_EVENT
    for status in [status for status in shown if status >= 400]:
        assert all(example in shown[status] for example in openapi.examples(operation.response(status)))


def test_an_animal_with_every_member_is_kept_whole() -> None:
    members = openapi.schema("NewPet")["properties"]
    new: dict[str, Any] = {name: schema["examples"][0] for name, schema in members.items()}

    pet = functions.invoke(EVENTS["create-201"] | {"body": json.dumps(new)}).body

    assert pet == {"id": 6, **new}
    assert functions.invoke(EVENTS["get-200"] | {"pathParameters": {"petId": "6"}}).body == pet
    for query in (None, {"status": [new["status"]]}):
        assert pet in functions.invoke(EVENTS["list-200"] | {"multiValueQueryStringParameters": query}).body


def test_requests_leave_nothing_in_memory(wire: Wire) -> None:
    """Send every event again and again; count the blocks of memory that stay."""

    def blocks_after(rounds: int) -> int:
        for name in [*EVENTS] * rounds:
            functions.invoke(EVENTS[name])
        for record in (wire.sent, wire.calls):
            record.clear()
        gc.collect()
        return sys.getallocatedblocks()

    before = blocks_after(15)  # until Python's own caches are full
    assert blocks_after(10) - before < 3 * 10 * len(EVENTS)  # whatever a request leaves is more than three blocks
