"""Each file of `events/` gets the response that its name promises and openapi.yaml declares."""

from unittest.mock import patch

import pytest

from tests.contract import openapi
from tests.support import handlers
from tests.support.fault_injection import DENIED, THROTTLED, FaultyStore, answering
from tests.support.handlers import EVENTS, SUCCESSES, function_of

pytestmark = pytest.mark.usefixtures("store")

# The request for a 413 is too large for a file; functions send none of the others.
STATUSES_WITHOUT_EVENT = {"413", "429", "502", "504", "default"}
# API Gateway adds `x-amzn-RequestId`.
COMMON_HEADERS = {"Cache-Control", "X-Content-Type-Options"}


@openapi.each_operation
def test_documented_statuses_and_examples_have_events(
    operation: openapi.Operation, store: FaultyStore
) -> None:
    function = f"{operation.block}Function"
    names = [name for name in EVENTS if function_of(EVENTS[name]) == function]
    success = next((name for name in names if name in SUCCESSES), "")
    assert success, f"Add an event to events/ that {operation.id} answers with 20x."
    store.fail("GetItem", DENIED)
    responses = {"-500": handlers.send(success)}
    store.fail("GetItem", THROTTLED, THROTTLED, THROTTLED)
    responses["-503"] = handlers.send(success)
    responses |= {name: handlers.send(name) for name in names}
    messages = ""
    for name, response in responses.items():
        assert f"-{response.status}" in name, f"events/{name}.json: {response}"
        openapi.check(operation, response.status, response.headers, response.text)
        declared = operation.responses[str(response.status)].get("headers", {})
        assert response.headers.keys() - {*declared, "Content-Type"} == COMMON_HEADERS
        messages += response.text

    statuses = {str(response.status) for response in responses.values()}
    assert statuses == operation.responses.keys() - STATUSES_WITHOUT_EVENT, (
        f"Add an event to events/ for each status of {operation.id}, as in list-400-limit.json."
    )
    for status in statuses - {"200", "201", "204"}:
        content = operation.responses[status]["content"]["application/json"]
        for example in content["examples"].values():
            assert example["value"]["message"] in messages, (
                f"openapi.yaml: no event of {operation.id} shows this example of a {status}."
            )


def test_list_pets_accepts_only_three_parameters() -> None:
    with patch("animal_store.request.Request.refuse_other_parameters") as refuse:
        handlers.send("list-200")
    refuse.assert_called_once_with(("limit", "cursor", "status"))


def test_pet_status_stored_by_a_newer_version_is_returned(store: FaultyStore) -> None:
    items = (
        b'{"Items": [{"id": {"N": "1"}, "name": {"S": "Rex"}, "categoryId": {"N": "3"},'
        b' "status": {"S": "adopted"}}]}'
    )
    store.fail("Query", answering(200, items))

    response = handlers.send("list-200")

    assert response.body[0]["status"] == "adopted"
