"""The way to DynamoDB: how often it is tried, when it is given up, and which of its responses are believed."""

import json
import traceback
from typing import Any

import pytest
from animal_store import catalogue, dynamodb
from animal_store.errors import ServiceUnavailable
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError, ReadTimeoutError, SSLError
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
MARGIN = dynamodb._MARGIN_SECONDS


def get_pet() -> Any:
    return catalogue.get_pet(1)


def slow(clock: Clock, seconds: float, fault: Fault) -> Fault:
    """Let time pass before a fault."""

    def slow_fault(attempt: Attempt) -> Any:
        clock.advance(seconds)
        return fault(attempt)

    return slow_fault


@pytest.fixture
def no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the SDK pause as long as it ever does."""
    delay_amount = ExponentialBackoff.delay_amount

    def longest(self: Any, context: Any) -> Any:
        self._random = lambda: 1.0
        return delay_amount(self, context)

    monkeypatch.setattr(ExponentialBackoff, "delay_amount", longest)


# -- attempts ----------------------------------------------------------------------------------------------------------

FAILURES = TRANSIENT | {
    "connect timeout": failing_with(ConnectTimeoutError),
    "read timeout": failing_with(ReadTimeoutError),
    "TLS": failing_with(SSLError, error=OSError("handshake")),
    "503": error(503, "ServiceUnavailable"),
    "500 of another name": error(500, "SomethingNewException"),
    "500 without a body": answering(500, b""),
    "502 of a proxy": answering(502, b"<html>Bad Gateway</html>"),
    "too many requests": error(400, "RequestLimitExceeded"),
    "throttling": error(400, "ThrottlingException"),
}


@pytest.mark.parametrize("fault", FAILURES.values(), ids=FAILURES)
def test_transient_failure_is_tried_three_times_and_counted(fault: Fault, wire: Wire, budget: dynamodb.Budget) -> None:
    wire.fail("GetItem", fault, fault)
    assert get_pet() is None
    assert budget.calls == 3

    wire.fail("GetItem", *[fault] * 9)
    with pytest.raises(ServiceUnavailable) as raised:
        get_pet()
    assert budget.calls == len(wire.sent) == 6
    assert raised.value.__cause__ is not None  # for the log


@pytest.mark.parametrize("code", sorted(dynamodb._TRANSIENT_CODES))
def test_each_transient_code_is_no_bug(code: str, wire: Wire, budget: dynamodb.Budget) -> None:  # noqa: ARG001
    wire.fail("GetItem", *[error(400, code)] * 3)

    with pytest.raises(ServiceUnavailable):
        get_pet()


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException", "ValidationException", "Other"])
def test_refusal_is_told_as_it_is_after_one_attempt(code: str, wire: Wire, budget: dynamodb.Budget) -> None:
    wire.fail("GetItem", error(400, code))

    with pytest.raises(ClientError) as raised:
        get_pet()

    assert raised.value.response["Error"] == {"Code": code, "Message": "from the store"}
    assert budget.calls == 1


def test_missing_credentials_are_unavailability(wire: Wire, budget: dynamodb.Budget) -> None:
    wire.fail("GetItem", failing_with(NoCredentialsError))

    with pytest.raises(ServiceUnavailable):
        get_pet()

    assert budget.calls == 1


# -- time --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("left", "calls"), [(ATTEMPT, 1), (ATTEMPT - 0.001, 0)])
def test_no_call_is_made_that_could_outlast_the_invocation(
    left: float, calls: int, clock: Clock, wire: Wire, budget: dynamodb.Budget
) -> None:
    budget.deadline = clock.uptime + left
    if calls:
        assert get_pet() is None
    else:
        with pytest.raises(ServiceUnavailable) as raised:
            get_pet()
        assert isinstance(raised.value.__cause__, TimeoutError)

    assert budget.calls == len(wire.sent) == calls


@pytest.mark.parametrize(("left", "attempts"), [(PAUSE + ATTEMPT, 2), (PAUSE + ATTEMPT - 0.001, 1)])
@pytest.mark.usefixtures("no_jitter")
def test_no_retry_is_made_that_could_outlast_the_invocation(
    left: float, attempts: int, clock: Clock, wire: Wire, budget: dynamodb.Budget
) -> None:
    wire.fail("GetItem", slow(clock, 10 - left, LOST_REQUEST), LOST_REQUEST)

    with pytest.raises(ServiceUnavailable):
        get_pet()

    assert budget.calls == len(wire.sent) == attempts


@pytest.mark.parametrize("fault", [LOST_REQUEST, THROTTLED, SERVER_ERROR])
@pytest.mark.usefixtures("no_jitter")
def test_invocation_ends_in_time_however_slow_every_attempt_is(
    fault: Fault, clock: Clock, wire: Wire, budget: dynamodb.Budget
) -> None:
    slowest = dynamodb._CONNECT_SECONDS + dynamodb._READ_SECONDS
    wire.fail("GetItem", *[slow(clock, slowest, fault)] * 9)

    with pytest.raises(ServiceUnavailable):
        get_pet()

    assert clock.uptime <= budget.deadline - MARGIN


@pytest.mark.parametrize(
    ("asked", "pauses"),
    [("", [1, 2]), ("0", [1, 2]), ("1500", [1.5, 2]), ("3000", [3]), ("600000", []), ("soon", [1, 2])],
)
@pytest.mark.usefixtures("no_jitter")
def test_invocation_ends_in_time_however_long_the_store_asks_to_wait(
    asked: str, pauses: list[float], clock: Clock, wire: Wire, budget: dynamodb.Budget
) -> None:
    # The header by which AWS asks for a longer pause, in milliseconds.
    throttled = answering(400, b'{"__type": "ThrottlingException"}', headers={"x-amz-retry-after": asked})
    wire.fail("GetItem", *[slow(clock, 0.5, throttled)] * 9)

    with pytest.raises(ServiceUnavailable):
        get_pet()

    assert clock.pauses == pauses
    assert max([*pauses[1:], 0]) <= PAUSE
    assert clock.uptime <= budget.deadline - MARGIN


def test_timeouts_of_the_client_are_the_ones_in_the_budget() -> None:
    config: Any = dynamodb.client.meta.config

    assert config.connect_timeout == dynamodb._CONNECT_SECONDS == 1
    assert config.read_timeout == dynamodb._READ_SECONDS == 2


# -- responses and requests --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["UpdateItem", "PutItem"])
def test_response_with_a_wrong_checksum_is_asked_for_again(
    operation: str, wire: Wire, budget: dynamodb.Budget, clock: Clock
) -> None:
    from animal_store.auth import Caller

    wire.fail(operation, answering(200, b"{}", crc32=1))

    catalogue.create_pet({"name": "Rex", "categoryId": 1}, Caller("0" * 64, "tests"), None)

    assert wire.sent.count(operation) == 2
    assert budget.calls == len(wire.sent)
    assert len(clock.pauses) == 1


@pytest.mark.usefixtures("budget")
def test_item_that_the_service_has_not_written_is_a_bug_told_without_its_content(wire: Wire) -> None:
    item = {"id": {"N": "1"}, "name": {"S": "secret name"}, "categoryId": {"N": "secret category"}}
    wire.fail("GetItem", answering(200, json.dumps({"Item": item}).encode()))

    with pytest.raises(ValueError, match=r"has not written: \[\{.*categoryId") as raised:
        get_pet()

    assert "secret" not in str(raised.value)
    assert raised.value.__suppress_context__


@pytest.mark.usefixtures("budget")
def test_error_that_cannot_be_read_is_told_without_its_content(wire: Wire) -> None:
    wire.fail("GetItem", answering(400, b'{"__type": "ConditionalCheckFailed", "Item": {"name": {"S": "secret'))

    with pytest.raises(ServiceUnavailable) as raised:
        get_pet()

    assert "secret" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.usefixtures("budget")
def test_requests_name_the_service_as_their_sender(wire: Wire) -> None:
    agents = []

    def note(attempt: Attempt) -> Any:
        agents.append(attempt.request.headers["User-Agent"])
        return attempt.carry_out()

    wire.fail("GetItem", note)
    get_pet()

    assert agents in ([b"animal-store/1.0"], ["animal-store/1.0"])
