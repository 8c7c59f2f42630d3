"""Each file of `events/` gets the response that its name promises and openapi.yaml declares."""

import json
from typing import Any

import pytest

from tests.support import handlers, openapi
from tests.support.handlers import EVENTS, Response
from tests.support.requests import Send

# Too large for a file, failures, and what API Gateway answers by itself.
WITHOUT_EVENT = {413, 429, 500, 502, 503, 504}


def send_events(operation: openapi.Operation) -> list[tuple[str, Response]]:
    """Send an operation's events twice; a creation with an Idempotency-Key is then repeated."""
    names = [
        name for name in EVENTS if handlers.operation_of(EVENTS[name]) == operation
    ]
    if operation.method != "DELETE":
        names *= 2
    return [(name, handlers.invoke(EVENTS[name])) for name in names]


@openapi.each_operation
@pytest.mark.usefixtures("store")
def test_event_gets_the_response_of_its_name(operation: openapi.Operation) -> None:
    for name, response in send_events(operation):
        assert f"-{response.status}" in name, (
            f"events/{name}.json got {response.status}."
        )
        assert handlers.problems(EVENTS[name], response) == []


@openapi.each_operation
@pytest.mark.usefixtures("store")
def test_events_show_each_status_and_each_example_of_an_error(
    operation: openapi.Operation,
) -> None:
    shown: dict[int, list[Any]] = {}
    for _, response in send_events(operation):
        shown.setdefault(response.status, []).append(response.body)

    assert shown.keys() == operation.responses.keys() - WITHOUT_EVENT, (
        f"Add an event to events/ for each status of {operation.id}, named after both."
    )
    for status in shown.keys() - {200, 201, 204}:
        for example in openapi.examples(operation.responses[status]):
            assert example in shown[status], f"no event in events/ shows this {status}"


def test_animal_with_every_member_is_kept_whole(send: Send) -> None:
    members = openapi.schema("NewPet")["properties"]
    new: dict[str, Any] = {
        name: schema["examples"][0] for name, schema in members.items()
    }

    pet = send("create_pet", body=json.dumps(new)).body

    assert pet == {"id": 6, **new}
    assert pet == send("get_pet", pathParameters={"petId": "6"}).body
    assert pet in send("list_pets").body
