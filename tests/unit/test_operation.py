"""How every operation runs: its response, its log line, and what nobody gets to see."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from animal_store import api_key, operation
from animal_store.operation import Response

from tests.support import handlers
from tests.support.clock import Clock
from tests.support.fault_injection import (
    DENIED,
    THROTTLED,
    Attempt,
    Fault,
    FaultyStore,
    answering,
)
from tests.support.handlers import EVENTS
from tools.local.events import EXAMPLE_KEY

KEY_ID = api_key.digest(EXAMPLE_KEY)[:12]

pytestmark = pytest.mark.usefixtures("store")


def log_entries(printed: str) -> list[dict[str, Any]]:
    """Read what is printed: one JSON object on each line."""
    return [json.loads(line) for line in printed.splitlines()]


def test_response_without_content_has_neither_body_nor_media_type() -> None:
    handler = operation.operation("deletePet")(lambda _: Response(204))
    context = SimpleNamespace(get_remaining_time_in_millis=lambda: 10_000)

    response = handler(EVENTS["list-200"], context)

    assert response["statusCode"] == 204
    assert response["body"] == ""
    assert "Content-Type" not in response["headers"]


@pytest.mark.parametrize(("left", "status", "calls"), [(3.499, 503, 0), (3.5, 200, 2)])
def test_invocation_may_spend_what_lambda_leaves_it(
    left: float, status: int, calls: int, store: FaultyStore
) -> None:
    response = handlers.invoke(EVENTS["list-200"], seconds=left)

    assert response.status == status
    assert len(store.sent) == calls


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("list-200", {"Operation": "listPets", "Status": "200", "StoreCalls": 2}),
        ("create-201", {"Operation": "createPet", "StoreCalls": 3, "PetId": 6}),
    ],
)
def test_line_of_a_request_says_who_asked_for_what(
    name: str,
    facts: Any,
    clock: Clock,
    store: FaultyStore,
    output: pytest.CaptureFixture[str],
) -> None:
    def slow(attempt: Attempt) -> Any:
        clock.advance(0.0125)
        return attempt.carry_out()

    store.fail("GetItem", slow)

    handlers.invoke(EVENTS[name])

    (line,) = log_entries(output.readouterr().out)
    caller = {"KeyLabel": "tests", "KeyId": KEY_ID, "Latency": 12.5}
    assert line.items() >= (facts | caller).items()
    context = EVENTS[name]["requestContext"]
    assert line["request_id"] == context["requestId"]
    # The one that a thief cannot choose: the access log has the address under it.
    assert line["extended_request_id"] == context["extendedRequestId"]


@pytest.mark.parametrize(
    ("headers", "facts"),
    [
        ({"Authorization": []}, {"StoreCalls": 0}),
        ({}, {"StoreCalls": 1, "KeyId": KEY_ID}),
    ],
    ids=["no key", "revoked key"],
)
def test_refused_request_is_not_counted_for_a_holder_of_a_key(
    headers: Any, facts: dict[str, Any], output: pytest.CaptureFixture[str]
) -> None:
    handlers.add_key(EXAMPLE_KEY, revoked={"N": "1"})

    handlers.send("list-200", headers=headers)

    (line,) = log_entries(output.readouterr().out)
    assert line.items() >= {"Status": "401", "Code": "unauthorized", **facts}.items()
    assert line.keys().isdisjoint({"KeyLabel", "DeprecatedCalls"})


UNKNOWN = api_key.generate("live")
SECRETS = ("Confidential", "76543210", "Bearer ", EXAMPLE_KEY[12:], UNKNOWN[12:])
BODY = '{"name": "Confidential", "categoryId": 76543210}'
CUT_OFF = answering(400, b'{"__type": "ConditionalCheckFailed", "Item": {"Confidential')
FOREIGN = answering(
    200, b'{"Item": {"label": {"S": "x"}, "expires": {"N": "Confidential"}}}'
)


@pytest.mark.parametrize(
    ("call", "fault", "code", "level", "cause"),
    [
        ("GetItem", DENIED, "internal_error", "ERROR", "AccessDenied"),
        ("GetItem", THROTTLED, "service_unavailable", "WARNING", "ThroughputExceeded"),
        ("GetItem", FOREIGN, "service_unavailable", "WARNING", "int_parsing"),
        ("UpdateItem", DENIED, "internal_error", "ERROR", "AccessDenied"),
        ("PutItem", DENIED, "internal_error", "ERROR", "AccessDenied"),
        ("PutItem", CUT_OFF, "service_unavailable", "WARNING", "truncated or corrupt"),
    ],
)
def test_cause_of_a_failure_is_for_the_log_alone_and_secrets_for_nobody(
    call: str,
    fault: Fault,
    code: str,
    level: str,
    *,
    cause: str,
    store: FaultyStore,
    output: pytest.CaptureFixture[str],
) -> None:
    store.fail(call, fault, fault, fault)

    response = handlers.send("create-201", body=BODY)

    assert response.body["code"] == code
    assert cause not in response.text
    printed = output.readouterr().out
    failure, request = log_entries(printed)
    assert (failure["level"], failure["service"]) == (level, "animal-store")
    assert cause in failure["exception"]
    # Without a zone Lambda ignores the level.
    assert failure["timestamp"].endswith("+00:00")
    assert request.items() >= {"Code": code, "KeyId": KEY_ID}.items()
    assert failure["request_id"] == request["request_id"]
    assert failure["extended_request_id"] == request["extended_request_id"]
    for secret in SECRETS:
        assert secret not in response.text + printed


@pytest.mark.parametrize(
    ("name", "differences"),
    [
        ("create-201", {"body": BODY[:-1]}),
        (
            "create-201",
            {"body": '{"name": ["Confidential"], "categoryId": "76543210"}'},
        ),
        ("create-201", {"headers": {"Idempotency-Key": ["Confidential key"]}}),
        ("list-200", {"headers": {"Authorization": [f"Bearer {UNKNOWN}"]}}),
        (
            "list-200",
            {"multiValueQueryStringParameters": {"cursor": ["Confidential"]}},
        ),
    ],
    ids=["cut off", "types", "idempotency key", "unknown key", "cursor"],
)
def test_refused_request_leaves_no_secret_in_log_or_response(
    name: str, differences: dict[str, Any], output: pytest.CaptureFixture[str]
) -> None:
    response = handlers.send(name, **differences)

    printed = output.readouterr().out
    assert 400 <= response.status < 500
    for secret in SECRETS:
        assert secret not in response.text + printed
