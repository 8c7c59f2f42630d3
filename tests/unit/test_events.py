"""Each file of `events/` gets the response that its name promises and openapi.yaml declares."""

import pytest

from tests.support import handlers, openapi
from tests.support.fault_injection import DENIED, THROTTLED, FaultyStore
from tests.support.handlers import EVENTS, SUCCESSES

from animal_store import settings  # isort: skip - the environment comes first

pytestmark = pytest.mark.usefixtures("store")

# Too large for a file, and what API Gateway answers by itself.
WITHOUT_EVENT = {413, 429, 502, 504}


@openapi.each_operation
def test_events_and_failures_show_each_status_and_example(
    operation: openapi.Operation, store: FaultyStore
) -> None:
    names = [
        name for name in EVENTS if handlers.operation_of(EVENTS[name]) == operation
    ]
    success = next((name for name in names if name in SUCCESSES), "")
    assert success, f"Add an event to events/ that {operation.id} answers with 20x."
    store.fail("GetItem", DENIED)
    responses = {"-500": handlers.send(success)}
    store.fail("GetItem", THROTTLED, THROTTLED, THROTTLED)
    responses["-503"] = handlers.send(success)
    for name in names:
        responses[name] = handlers.send(name)
    if operation.method != "DELETE":
        # A creation with an Idempotency-Key is repeated.
        responses |= {f"{name} again": handlers.send(name) for name in names}
    messages = []
    for name, response in responses.items():
        assert f"-{response.status}" in name, f"events/{name}.json: {response}"
        assert openapi.problems(operation, *response, in_process=True) == []
        messages.append(response.text)

    shown = {response.status for response in responses.values()}
    assert shown == operation.responses.keys() - WITHOUT_EVENT, (
        f"Add an event to events/ for each status of {operation.id}, named after both."
    )
    for status in shown - {200, 201, 204}:
        content = operation.responses[status]["content"]["application/json"]
        for example in content["examples"].values():
            assert example["value"]["message"] in "".join(messages), (
                f"openapi.yaml: no event of {operation.id} shows this example of a {status}."
            )


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
