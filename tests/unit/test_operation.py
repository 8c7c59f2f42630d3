"""The frame of every operation: responses, log lines, and secrets that appear in neither."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from animal_store import api_key
from animal_store.operation import Deprecation, operation
from animal_store.response import Response

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
from tools.key_table import EXAMPLE_KEY

KEY_ID = api_key.digest(EXAMPLE_KEY)[:12]
Output = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("store")


def test_deprecated_deletion_says_so_and_has_neither_body_nor_media_type(
    output: Output,
) -> None:
    context = SimpleNamespace(get_remaining_time_in_millis=lambda: 10_000)
    deprecation = Deprecation(since=1, sunset="Thu, 05 Dec 2030 00:00:00 GMT")
    delete_pet = operation("deletePet", deprecation=deprecation)(
        lambda _: Response(204)
    )

    response = delete_pet(EVENTS["list-200"], context)

    headers = response["headers"]
    assert (response["statusCode"], response["body"]) == (204, "")
    assert "Content-Type" not in headers
    assert (headers["Deprecation"], headers["Sunset"]) == ("@1", deprecation.sunset)
    assert json.loads(output.readouterr().out)["DeprecatedCalls"] == 1


def test_line_of_a_creation_has_its_id_and_what_it_cost(
    clock: Clock, store: FaultyStore, output: Output
) -> None:
    def slow(attempt: Attempt) -> Any:
        clock.advance(0.012504)
        return attempt.carry_out()

    store.fail("GetItem", slow)

    handlers.send("create-201")

    line = json.loads(output.readouterr().out)
    assert (line["CreatedId"], line["StoreCalls"], line["Latency"]) == (6, 3, 12.5)
    assert line.keys().isdisjoint({"Errors", "DeprecatedCalls", "Version"})


def test_request_with_a_revoked_key_counts_for_no_label_and_no_version(
    output: Output,
) -> None:
    handlers.add_key(EXAMPLE_KEY, revoked={"N": "1"})

    handlers.send("get-200")

    line = json.loads(output.readouterr().out)
    assert (line["Code"], line["KeyId"]) == ("unauthorized", KEY_ID)
    assert line.keys().isdisjoint({"KeyLabel", "DeprecatedCalls", "Version"})


@pytest.mark.parametrize(
    ("context", "members"),
    [
        ({"domainName": None}, {}),
        ({"path": None}, {}),
        ({}, {"resource": None}),
        ({}, {"headers": {"Authorization": []}, "resource": None}),
    ],
)
def test_headers_that_cannot_be_made_are_an_error_and_no_crash(
    context: dict[str, Any], members: dict[str, Any]
) -> None:
    event = handlers.make_event("get-200", **members)
    event["requestContext"] = event["requestContext"] | context

    response = handlers.invoke(event, function="GetPetFunction")

    assert response.status == 500
    assert response.body["code"] == "internal_error"


UNKNOWN = api_key.generate("live")
SECRETS = ("Confidential", "76543210", "Bearer ", EXAMPLE_KEY[12:], UNKNOWN[12:])
BODY = '{"name": "Confidential", "categoryId": 76543210}'
CUT_OFF = answering(400, b'{"__type": "ConditionalCheckFailed", "Item": {"Confidential')
FOREIGN = answering(
    200, b'{"Item": {"label": {"S": "x"}, "expires": {"N": "Confidential"}}}'
)


@pytest.mark.parametrize(
    ("call", "fault", "level", "cause"),
    [
        ("GetItem", FOREIGN, "WARNING", "int_parsing"),
        ("UpdateItem", THROTTLED, "WARNING", "ThroughputExceeded"),
        ("PutItem", DENIED, "ERROR", "AccessDenied"),
        ("PutItem", CUT_OFF, "WARNING", "truncated or corrupt"),
    ],
)
def test_cause_of_a_failure_is_for_the_log_alone_and_secrets_for_nobody(
    call: str,
    fault: Fault,
    level: str,
    *,
    cause: str,
    store: FaultyStore,
    output: Output,
) -> None:
    store.fail(call, fault, fault, fault)

    response = handlers.send("create-201", body=BODY)

    printed = output.readouterr().out
    failure, request = map(json.loads, printed.splitlines())
    assert (failure["level"], failure["service"]) == (level, "animal-store")
    assert cause in failure["exception"]
    assert cause not in response.text
    # Without a zone Lambda ignores the level.
    assert failure["timestamp"].endswith("+00:00")
    assert (request["Version"], request["KeyId"]) == ("$LATEST", KEY_ID)
    assert ("KeyLabel" in request) is (call != "GetItem")
    assert failure["request_id"] == request["request_id"]
    assert failure["extended_request_id"] == request["extended_request_id"]
    for secret in SECRETS:
        assert secret not in response.text + printed


@pytest.mark.parametrize(
    ("name", "differences"),
    [
        ("create-201", {"body": '{"name": ["Confidential"], "categoryId": 1}'}),
        ("create-201", {"headers": {"Idempotency-Key": ["Confidential key"]}}),
        ("list-200", {"headers": {"Authorization": [f"Bearer {UNKNOWN}"]}}),
        ("list-200", {"multiValueQueryStringParameters": {"cursor": ["Confidential"]}}),
        ("get-200", {"pathParameters": {"petId": "Confidential"}}),
    ],
)
def test_refused_request_leaves_no_secret_in_log_or_response(
    name: str, differences: dict[str, Any], output: Output
) -> None:
    response = handlers.send(name, **differences)

    printed = output.readouterr().out
    assert 400 <= response.status < 500
    for secret in SECRETS:
        assert secret not in response.text + printed
