"""Each file of `events/` gets the response that its name promises, and the one that openapi.yaml declares.

Successful events of the same function are sent before an event that is not: so a 422 has a creation to differ from.
"""

import gc
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests import functions, openapi
from tests.fault_injection import Wire
from tests.functions import EVENTS, SUCCESSES, Response

# Too large for a file, failures, and what API Gateway answers by itself.
WITHOUT_EVENT = {413, 429, 500, 502, 503, 504}


@pytest.fixture
def wire() -> Iterator[Wire]:
    """Give the layer's way to a store with the animals of the events."""
    from animal_store import dynamodb

    database = functions.new_database(pets=True)
    wire = Wire(dynamodb.client, database)
    yield wire
    wire.detach()
    functions.discard(database)


def send(name: str) -> Response:
    """Send an event, after the successful ones of its function if it is to fail."""
    for earlier in SUCCESSES:
        if name not in SUCCESSES and functions.function_of(EVENTS[earlier]) == functions.function_of(EVENTS[name]):
            functions.invoke(EVENTS[earlier])
    return functions.invoke(EVENTS[name])


@pytest.mark.parametrize("name", EVENTS)
def test_event_gets_the_response_that_its_name_promises(name: str, wire: Wire) -> None:
    response = send(name)

    assert f"-{response.status}" in name
    assert functions.problems(EVENTS[name], response) == []
    assert wire.invalid == []


@pytest.mark.parametrize("operation", openapi.operations(), ids=lambda operation: operation.id)
@pytest.mark.usefixtures("wire")
def test_events_show_each_status_of_an_operation_and_each_example_of_an_error(operation: openapi.Operation) -> None:
    names = [name for name, event in EVENTS.items() if functions.operation_of(event).id == operation.id]
    responses = [send(name) for name in names]

    assert {response.status for response in responses} == operation.statuses - WITHOUT_EVENT
    for status in {response.status for response in responses if response.status >= 400}:
        for example in openapi.examples(operation.response(status)):
            assert example in [response.body for response in responses]


def test_repeated_creation_is_marked(wire: Wire) -> None:  # noqa: ARG001 - the way to the store
    first, again = (functions.invoke(EVENTS["create-201-idempotency-key"]) for _ in range(2))

    assert again.body == first.body
    assert again.headers == {**first.headers, "Idempotency-Replayed": "true"}
    assert functions.problems(EVENTS["create-201-idempotency-key"], again) == []


@pytest.mark.usefixtures("wire")
def test_an_animal_with_every_member_is_kept_whole() -> None:
    members = openapi.schema("NewPet")["properties"]
    new: dict[str, Any] = {name: schema["examples"][0] for name, schema in members.items()}
    create, get, listed = (dict(EVENTS[name]) for name in ("create-201", "get-200", "list-200"))
    create["body"], get["pathParameters"] = json.dumps(new), {"petId": "6"}

    pet = functions.invoke(create).body

    assert pet == {"id": 6, **new}
    assert functions.invoke(get).body == pet
    assert functions.invoke(listed).body[5] == pet
    listed["multiValueQueryStringParameters"] = {"status": [new["status"]]}
    assert pet in functions.invoke(listed).body


@pytest.mark.parametrize("name", EVENTS)
def test_event_is_consistent(name: str) -> None:
    event = EVENTS[name]
    context = event["requestContext"]

    assert event["headers"] == {key: values[-1] for key, values in event["multiValueHeaders"].items()}
    assert (event["queryStringParameters"] or {}) == {
        key: values[-1] for key, values in (event["multiValueQueryStringParameters"] or {}).items()
    }
    assert event["path"] == event["resource"].format_map(event["pathParameters"] or {})
    assert context["path"] == f"/{context['stage']}{event['path']}"
    assert (context["resourcePath"], context["httpMethod"]) == (event["resource"], event["httpMethod"])
    assert context["domainName"] == event["headers"]["Host"]


def test_requests_leave_nothing_in_memory(wire: Wire) -> None:
    """Send every event again and again; count the blocks of memory that stay."""

    def blocks_after(rounds: int) -> int:
        for name in [*EVENTS] * rounds:
            functions.invoke(EVENTS[name])
        for record in (wire.sent, wire.bodies, wire.calls):
            record.clear()
        gc.collect()
        return sys.getallocatedblocks()

    before = blocks_after(15)  # until Python's own caches are full
    assert blocks_after(10) - before < 3 * 10 * len(EVENTS)  # whatever a request leaves is more than three blocks
