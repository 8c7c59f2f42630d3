"""Each file of `events/` gets the response that its name promises and openapi.yaml declares."""

import json

import pytest

from tests.support import handlers, openapi
from tests.support.handlers import EVENTS

from animal_store import settings  # isort: skip - the environment comes first

pytestmark = pytest.mark.usefixtures("store")

# Too large for a file, failures, and what API Gateway answers by itself.
WITHOUT_EVENT = {413, 429, 500, 502, 503, 504}


@openapi.each_operation
def test_events_show_each_status(
    operation: openapi.Operation,
) -> None:
    names = [
        name for name in EVENTS if handlers.operation_of(EVENTS[name]) == operation
    ]
    if operation.method != "DELETE":
        names *= 2  # a creation with an Idempotency-Key is then repeated
    shown = set()
    for name in names:
        response = handlers.invoke(EVENTS[name])
        shown.add(response.status)
        assert f"-{response.status}" in name, f"events/{name}.json: {response}"
        assert openapi.problems(operation, *response, in_process=True) == []

    assert shown == operation.responses.keys() - WITHOUT_EVENT, (
        f"Add an event to events/ for each status of {operation.id}, named after both."
    )


def test_events_show_each_example_of_an_error() -> None:
    """Of one operation at least: operations share responses."""
    shown = [handlers.invoke(event).body for event in [*EVENTS.values()] * 2]

    for operation in openapi.operations():
        for status in operation.responses.keys() - WITHOUT_EVENT - {200, 201, 204}:
            content = operation.responses[status]["content"]["application/json"]
            for example in content["examples"].values():
                why = f"no event in events/ shows this {status}"
                assert example["value"] in shown, why


def test_animal_with_every_member_is_kept_whole() -> None:
    new = openapi.example("NewPet")

    pet = handlers.send("create-201", body=json.dumps(new)).body

    assert pet == {"id": 6, **new}
    assert pet in handlers.send("list-200").body


def test_status_that_a_newer_version_has_stored_is_returned() -> None:
    new = handlers.items("pet")[0] | {"status": {"S": "adopted"}}
    handlers.ask("PutItem", handlers.ANIMALS, Item=new)

    (pet, *_) = handlers.send("list-200").body

    assert pet["status"] == "adopted"


def test_cursor_of_another_stage_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert handlers.send("list-200-cursor").status == 200
    monkeypatch.setattr(settings, "STAGE", "production")

    refused = handlers.send("list-200-cursor")

    assert refused.body["message"].startswith("cursor: ")
