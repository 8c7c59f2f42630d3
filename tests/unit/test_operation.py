"""Responses and log lines that all operations have in common."""

from typing import Any

import pytest
from animal_store.response import Response

from tests.support import handlers
from tests.support.fault_injection import (
    DENIED,
    Fault,
    FaultyStore,
    answering,
    error,
)
from tools.key_table import EXAMPLE_KEY, generate

UNKNOWN_KEY = generate("live")
SECRETS = ("Confidential", "76543210", "Bearer ", EXAMPLE_KEY[12:], UNKNOWN_KEY[12:])
CUT_OFF_RESPONSE = answering(
    400, b'{"__type": "ConditionalCheckFailed", "Item": {"Confidential'
)
# The date has the wrong type, because an operator wrote it by hand. The key must not count as a key
# that never expires.
EXPIRES_AS_TEXT = answering(
    200, b'{"Item": {"label": {"S": "x"}, "expires": {"S": "Confidential"}}}'
)
TRANSACTION_IN_PROGRESS = error(400, "TransactionInProgressException")
THROTTLED_TABLE = error(
    400,
    "ThrottlingException",
    throttlingReasons=[{"reason": "TableWriteMaxOnDemandThroughputExceeded"}],
)
THROTTLED_TRANSACTION = error(
    400,
    "TransactionCanceledException",
    CancellationReasons=[
        {
            "Code": "ThrottlingError",
            "Message": "exceeds its limit",
            "Item": {"name": {"S": "Confidential"}},
        }
    ],
)

pytestmark = pytest.mark.usefixtures("store")


def test_204_has_neither_body_nor_content_type() -> None:
    response = Response(204).render({})

    assert (response["statusCode"], response["body"]) == (204, "")
    assert "Content-Type" not in response["headers"]


@pytest.mark.parametrize(
    ("call", "fault", "level", "cause"),
    [
        ("GetItem", EXPIRES_AS_TEXT, "WARNING", "'expires', 'N'"),
        ("UpdateItem", THROTTLED_TABLE, "WARNING", "TableWriteMaxOnDemandThroughput"),
        ("UpdateItem", error(400, "RequestLimitExceeded"), "WARNING", "RequestLimit"),
        ("UpdateItem", error(500, "SomethingNew"), "WARNING", "SomethingNew"),
        ("TransactWriteItems", TRANSACTION_IN_PROGRESS, "WARNING", "InProgress"),
        ("TransactWriteItems", THROTTLED_TRANSACTION, "WARNING", "exceeds its limit"),
        ("TransactWriteItems", DENIED, "ERROR", "AccessDenied"),
        ("TransactWriteItems", CUT_OFF_RESPONSE, "WARNING", "truncated or corrupt"),
    ],
)
def test_cause_of_a_failure_is_logged_but_not_sent(
    call: str, fault: Fault, level: str, cause: str, store: FaultyStore
) -> None:
    store.fail(call, *[fault] * 6)

    response = handlers.send(
        "create-201-idempotency-key",
        body='{"name": "Confidential", "categoryId": 76543210}',
    )

    failure, request = response.lines
    assert (failure["level"], failure["service"]) == (level, "animal-store")
    assert cause in failure["exception"]
    assert cause not in response.text
    # Lambda reads the level only if the time has a zone.
    assert failure["timestamp"].endswith("+00:00")
    assert failure["request_id"] == request["request_id"]
    assert failure["extended_request_id"] == request["extended_request_id"]
    # The deployment alarms count the version's errors, also those of an unreachable store.
    assert request["Version"] == "$LATEST"
    for secret in SECRETS:
        assert secret not in response.text + response.log


@pytest.mark.parametrize(
    ("name", "differences"),
    [
        ("create-201", {"body": '{"name": ["Confidential"], "categoryId": 1}'}),
        ("list-200", {"headers": {"Authorization": [f"Bearer {UNKNOWN_KEY}"]}}),
        ("list-200", {"multiValueQueryStringParameters": {"cursor": ["Confidential"]}}),
    ],
)
def test_refused_request_logs_no_secret_and_adds_no_animal(
    name: str, differences: dict[str, Any]
) -> None:
    response = handlers.send(name, **differences)

    assert 400 <= response.status < 500
    assert len(handlers.items("pet")) == 5
    for secret in SECRETS:
        assert secret not in response.text + response.log
