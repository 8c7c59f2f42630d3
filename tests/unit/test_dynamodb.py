"""The way to DynamoDB: how often it is tried, when it is given up, and which of its responses are believed."""

from typing import Any

import pytest
from animal_store import catalogue, dynamodb
from animal_store.auth import Caller
from animal_store.dynamodb import Budget
from animal_store.errors import ServiceUnavailable
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError, SSLError
from botocore.retries.standard import ExponentialBackoff

from tests.fault_injection import (
    LOST_REQUEST,
    SERVER_ERROR,
    THROTTLED,
    TRANSIENT,
    Attempt,
    Fault,
    Wire,
    answering,
    error,
    failing_with,
)
from tests.unit.conftest import Clock

pytestmark = pytest.mark.usefixtures("wire")

ATTEMPT = dynamodb._ATTEMPT_SECONDS
PAUSE = dynamodb._BACKOFF_SECONDS


def get_pet() -> Any:
    return catalogue.get_pet(17)


# -- attempts ----------------------------------------------------------------------------------------------------------

# Those that every call is forced through (test_events.py), and others that the SDK tries again.
RETRIED = TRANSIENT | {
    "connect timeout": failing_with(ConnectTimeoutError),
    "TLS": failing_with(SSLError, error=OSError("handshake")),
    "503": error(503, "ServiceUnavailable"),
    "500 of another name": error(500, "SomethingNewException"),
    "500 without a body": answering(500, b""),
    "502 of a proxy": answering(502, b"<html>Bad Gateway</html>"),
    **{code: error(400, code) for code in ("RequestLimitExceeded", "Throttling", "ThrottlingException")},
    "transaction in progress": error(400, "TransactionInProgressException"),
}
REFUSALS = ["AccessDeniedException", "ResourceNotFoundException", "ValidationException", "Other"]


@pytest.mark.parametrize(
    ("fault", "expected", "attempts"),
    [
        *(pytest.param(fault, ServiceUnavailable, 3, id=name) for name, fault in RETRIED.items()),
        pytest.param(failing_with(NoCredentialsError), ServiceUnavailable, 1, id="no credentials"),
        *(pytest.param(error(400, code), ClientError, 1, id=code) for code in REFUSALS),
    ],
)
def test_failure_is_retried_and_counted_or_told_as_it_is(
    fault: Fault, expected: type[Exception], attempts: int, wire: Wire, budget: Budget
) -> None:
    wire.fail("GetItem", *[fault] * 9)

    with pytest.raises(expected) as raised:
        get_pet()

    assert budget.calls == len(wire.sent) == attempts
    assert isinstance(raised.value, ClientError) or raised.value.__cause__ is not None  # for the log


# -- time --------------------------------------------------------------------------------------------------------------


def asking_to_wait(milliseconds: str) -> Fault:
    """Throttle with the header by which AWS asks for a longer pause."""
    return answering(400, b'{"__type": "ThrottlingException"}', headers={"x-amz-retry-after": milliseconds})


@pytest.mark.parametrize(
    ("before", "during", "fault", "attempts"),
    [
        (10 - ATTEMPT + 0.001, 0, LOST_REQUEST, 0),
        (10 - ATTEMPT, 0, LOST_REQUEST, 1),
        (0, 10 - PAUSE - ATTEMPT + 0.001, LOST_REQUEST, 1),
        (0, 10 - PAUSE - ATTEMPT, LOST_REQUEST, 2),
        *((0, 3, fault, 2) for fault in (LOST_REQUEST, THROTTLED, SERVER_ERROR)),
        *((0, 1.75, asking_to_wait(text), 3) for text in ("", "0", "soon")),
        (0, 0.5, asking_to_wait("1500"), 3),
        (0, 0.5, asking_to_wait("3000"), 2),
        (0, 0.5, asking_to_wait("600000"), 1),
    ],
)
def test_each_attempt_could_last_its_longest_within_the_invocation(
    before: float,
    during: float,
    fault: Fault,
    attempts: int,
    *,
    clock: Clock,
    wire: Wire,
    budget: Budget,
    monkeypatch: Any,
) -> None:
    # The SDK pauses as long as it ever does.
    monkeypatch.setattr(ExponentialBackoff, "_random", property(lambda _: lambda: 1.0), raising=False)
    started = []

    def slow(attempt: Attempt) -> Any:
        started.append(clock.uptime)
        clock.advance(during)
        return fault(attempt)

    clock.advance(before)
    wire.fail("GetItem", *[slow] * 9)

    with pytest.raises(ServiceUnavailable) as raised:
        get_pet()

    assert budget.calls == len(started) == attempts
    assert all(moment <= budget.deadline - ATTEMPT for moment in started)
    assert isinstance(raised.value.__cause__, TimeoutError) is (attempts == 0)


def test_client_has_the_timeouts_of_the_budget_and_names_the_service() -> None:
    config: Any = dynamodb.client.meta.config

    assert config.connect_timeout == dynamodb._CONNECT_SECONDS == 1
    assert config.read_timeout == dynamodb._READ_SECONDS == 2
    assert config.user_agent == "animal-store/1.0"


@pytest.mark.parametrize("operation", ["UpdateItem", "PutItem"])
def test_response_with_a_wrong_checksum_is_asked_for_again(operation: str, wire: Wire, budget: Budget) -> None:
    wire.fail(operation, answering(200, b"{}", crc32=1))

    catalogue.create_pet({"name": "Rex", "categoryId": 1}, Caller("0" * 64, "tests"), None)

    assert budget.calls == len(wire.sent) == 3
