"""How every operation runs: its response, its log line, and what nobody gets to see."""

import io
from typing import Any

import pytest
from animal_store import api_key, dynamodb, operation
from animal_store.operation import Response

from tests.support import handlers
from tests.support.fault_injection import (
    DENIED,
    THROTTLED,
    Attempt,
    Fault,
    FaultyStore,
    answering,
)
from tests.support.handlers import EVENTS, Context
from tests.support.requests import Clock, Send, log_entries, make_event
from tools.local.events import EXAMPLE_KEY

KEY_ID = api_key.digest(EXAMPLE_KEY)[:12]


@pytest.mark.usefixtures("store")
def test_response_without_content_has_neither_body_nor_media_type() -> None:
    handler = operation.operation("deletePet")(lambda _: Response(204))

    response = handler(make_event("list_pets"), Context())

    assert response["statusCode"] == 204
    assert response["body"] == ""
    assert "Content-Type" not in response["headers"]


@pytest.mark.parametrize(("left", "status", "calls"), [(3.499, 503, 0), (3.5, 200, 2)])
def test_invocation_may_spend_what_lambda_leaves_it(
    left: float, status: int, calls: int, clock: Clock, store: FaultyStore
) -> None:
    response = handlers.invoke(EVENTS["list-200"], Context(left))

    assert response.status == status
    assert len(store.sent) == calls
    assert dynamodb.invocation.get().deadline == clock.uptime + left


def test_get_pet_says_since_when_it_is_deprecated_and_when_it_goes(send: Send) -> None:
    headers = send("get_pet").headers

    assert headers["Deprecation"] == "@1764892800"  # 5 December 2025
    assert headers["Sunset"] == "Thu, 05 Dec 2030 00:00:00 GMT"


def bug(_: Attempt) -> Any:
    raise KeyError("secret detail")


@pytest.mark.parametrize(
    ("fault", "code", "level", "message", "cause"),
    [
        (bug, "internal_error", "ERROR", "The operation failed.", "secret detail"),
        (DENIED, "internal_error", "ERROR", "The operation failed.", "AccessDenied"),
        (
            THROTTLED,
            "service_unavailable",
            "WARNING",
            "The store did not answer.",
            "ThroughputExceeded",
        ),
    ],
)
@pytest.mark.usefixtures("clock")
def test_cause_of_a_failure_is_for_the_log_and_not_for_the_client(
    fault: Fault,
    code: str,
    cause: str,
    *,
    level: str,
    message: str,
    store: FaultyStore,
    send: Send,
    output: io.StringIO,
) -> None:
    store.fail("GetItem", fault, fault, fault)

    response = send("get_pet")

    assert response.body["code"] == code
    assert cause not in response.text
    entry, request = log_entries(output)
    assert (entry["level"], entry["message"], entry["service"]) == (
        level,
        message,
        "animal-store",
    )
    assert cause in entry["exception"]
    # Without a zone Lambda ignores the level.
    assert entry["timestamp"].endswith("+00:00")
    assert request["Code"] == code


@pytest.mark.parametrize(
    ("folder", "facts"),
    [
        ("list_pets", {"Operation": "listPets", "Status": "200", "StoreCalls": 2}),
        (
            "create_pet",
            {"Operation": "createPet", "Status": "201", "StoreCalls": 3, "PetId": 6},
        ),
        ("get_pet", {"Operation": "getPet", "Status": "200", "DeprecatedCalls": 1}),
    ],
)
def test_line_of_a_request_says_who_asked_for_what(
    folder: str,
    facts: dict[str, Any],
    *,
    clock: Clock,
    store: FaultyStore,
    send: Send,
    output: Any,
) -> None:
    def slow(attempt: Attempt) -> Any:
        clock.advance(0.0125)
        return attempt.carry_out()

    store.fail("GetItem", slow)

    send(folder)

    (line,) = log_entries(output)
    caller = {"KeyLabel": "tests", "KeyId": KEY_ID, "Latency": 12.5}
    assert line.items() >= (facts | caller).items()
    assert line["request_id"] == make_event(folder)["requestContext"]["requestId"]


@pytest.mark.parametrize(
    ("headers", "facts"),
    [
        ({"Authorization": []}, {"StoreCalls": 0}),
        ({}, {"StoreCalls": 1, "KeyId": KEY_ID}),
    ],
    ids=["no key", "revoked key"],
)
def test_refused_request_is_not_counted_for_a_holder_of_a_key(
    headers: Any,
    facts: dict[str, Any],
    send: Send,
    store: FaultyStore,
    output: io.StringIO,
) -> None:
    handlers.add_key(handlers.client(store.database), EXAMPLE_KEY, revoked={"N": "1"})

    send("get_pet", headers=headers)

    (line,) = log_entries(output)
    assert line.items() >= {"Status": "401", "Code": "unauthorized", **facts}.items()
    assert line.keys().isdisjoint({"KeyLabel", "PetId", "DeprecatedCalls"})


UNKNOWN = api_key.generate("live")
SECRETS = ("Confidential", "76543210", "Bearer ", EXAMPLE_KEY[12:], UNKNOWN[12:])
BODY = '{"name": "Confidential", "categoryId": 76543210}'
CUT_OFF = answering(400, b'{"__type": "ConditionalCheckFailed", "Item": {"Confidential')
FOREIGN = answering(
    200, b'{"Item": {"label": {"S": "x"}, "expires": {"N": "Confidential"}}}'
)


def assert_has_no_secret(text: str) -> None:
    for secret in SECRETS:
        assert secret not in text


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        ("GetItem", DENIED),
        ("GetItem", THROTTLED),
        ("GetItem", FOREIGN),
        ("UpdateItem", DENIED),
        ("PutItem", DENIED),
        ("PutItem", CUT_OFF),
    ],
)
@pytest.mark.usefixtures("clock")
def test_failure_leaves_no_secret_in_log_or_response(
    call: str, fault: Fault, send: Send, store: FaultyStore, output: io.StringIO
) -> None:
    store.fail(call, fault, fault, fault)

    response = send("create_pet", body=BODY)

    assert response.status in {500, 503}
    assert_has_no_secret(response.text + output.getvalue())


@pytest.mark.parametrize(
    ("folder", "request_"),
    [
        ("create_pet", {"body": BODY}),
        ("create_pet", {"body": BODY[:-1]}),
        (
            "create_pet",
            {"body": '{"name": ["Confidential"], "categoryId": "76543210"}'},
        ),
        ("create_pet", {"headers": {"Idempotency-Key": ["Confidential key"]}}),
        ("list_pets", {"headers": {"Authorization": [f"Bearer {UNKNOWN}"]}}),
        (
            "list_pets",
            {"multiValueQueryStringParameters": {"cursor": ["Confidential"]}},
        ),
        (
            "list_pets",
            {"multiValueQueryStringParameters": {"status": ["Confidential"]}},
        ),
        ("get_pet", {"pathParameters": {"petId": "Confidential-id"}}),
    ],
    ids=[
        "created",
        "cut off",
        "types",
        "idempotency key",
        "unknown key",
        "cursor",
        "status",
        "id",
    ],
)
def test_request_leaves_no_secret_in_the_log_and_an_error_has_none(
    folder: str, request_: dict[str, Any], send: Send, output: io.StringIO
) -> None:
    response = send(folder, **request_)

    assert_has_no_secret(output.getvalue())
    if response.status != 201:
        assert_has_no_secret(response.text)


def test_closed_table_answers_a_creation_with_503(
    store: FaultyStore, send: Send
) -> None:
    """See `cut_over` in tools/deployment/restore.py."""
    before = send("list_pets").body
    handlers.client(store.database).update_item(
        TableName=handlers.TEMPLATE.tables["AnimalsTable"].name,
        Key={"pk": {"S": "counter"}, "id": {"N": "0"}},
        UpdateExpression="SET closed = :now",
        ExpressionAttributeValues={":now": {"N": "1800000000"}},
    )

    response = send("create_pet", body='{"name": "Rex", "categoryId": 1}')

    assert response.status == 503
    assert response.body["code"] == "service_unavailable"
    assert response.headers["Retry-After"]
    assert send("list_pets").body == before


def test_counter_that_the_role_may_not_change_is_an_error(
    store: FaultyStore, send: Send
) -> None:
    store.fail("UpdateItem", DENIED)

    assert send("create_pet", body='{"name": "Rex", "categoryId": 1}').status == 500
