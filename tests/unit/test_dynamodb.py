"""The way to DynamoDB: how often it is tried, when it is given up, and what of its answers is believed."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from animal_store import auth, catalogue, dynamodb, settings
from animal_store.errors import ServiceUnavailable
from animal_store.validators import PET_ITEM
from botocore.awsrequest import AWSResponse
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
    SSLError,
)
from botocore.retries.standard import ExponentialBackoff

from tests.unit.conftest import Clock
from tests.unit.fault_injection import (
    DENIED,
    SERVER_ERROR,
    THROTTLED,
    Fault,
    Wire,
    answer,
    cut_answer,
    error,
    lost_request,
)

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.usefixtures("tables")

ATTEMPT = dynamodb._ATTEMPT_SECONDS
PAUSE = dynamodb._BACKOFF_SECONDS
CALLER = auth.Caller("0" * 64, "unit tests")


def get_pet() -> Any:
    return catalogue.get_pet(1)


def failing_with(exception: Exception) -> Fault:
    def fault(_: Callable[[], AWSResponse]) -> AWSResponse:
        raise exception

    return fault


def slow(clock: Clock, seconds: float, fault: Fault) -> Fault:
    """Let time pass before a fault."""

    def slow_fault(carry_out: Callable[[], AWSResponse]) -> AWSResponse:
        clock.advance(seconds)
        return fault(carry_out)

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

TRANSIENT = {
    "reset": lost_request,
    "no connection": failing_with(EndpointConnectionError(endpoint_url="https://dynamodb")),
    "connect timeout": failing_with(ConnectTimeoutError(endpoint_url="https://dynamodb")),
    "read timeout": failing_with(ReadTimeoutError(endpoint_url="https://dynamodb")),
    "TLS": failing_with(SSLError(endpoint_url="https://dynamodb", error=OSError("handshake"))),
    "500": SERVER_ERROR,
    "503": error(503, "ServiceUnavailable"),
    "500 of another name": error(500, "SomethingNewException"),
    "500 without a body": answer(500, b""),
    "502 of a proxy": answer(502, b"<html>Bad Gateway</html>"),
    **{
        code: error(400, code)
        for code in ("ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException")
    },
}


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT)
@pytest.mark.usefixtures("clock")
def test_transient_failure_is_tried_three_times_and_counted(fault: Fault, wire: Wire, budget: dynamodb.Budget) -> None:
    wire.fail("GetItem", *[fault] * 9)

    with pytest.raises(ServiceUnavailable):
        get_pet()

    assert len(wire.sent) == 3
    assert budget.calls == 3


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT)
@pytest.mark.parametrize("failures", [1, 2])
def test_call_that_succeeds_in_the_end_is_a_success(
    failures: int, fault: Fault, wire: Wire, budget: dynamodb.Budget
) -> None:
    wire.fail("GetItem", *[fault] * failures)

    assert get_pet() is None
    assert budget.calls == failures + 1


@pytest.mark.parametrize("code", sorted(dynamodb._TRANSIENT_CODES))
def test_each_transient_code_is_no_bug(code: str, wire: Wire, budget: dynamodb.Budget) -> None:  # noqa: ARG001
    wire.fail("GetItem", *[error(400, code)] * 3)

    with pytest.raises(ServiceUnavailable):
        get_pet()


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException", "ValidationException", "Other"])
def test_refusal_is_told_as_it_is_after_one_attempt(code: str, wire: Wire, budget: dynamodb.Budget) -> None:
    wire.fail("GetItem", error(400, code))

    with pytest.raises(ClientError, match=code):
        get_pet()

    assert budget.calls == 1


def test_missing_credentials_are_unavailability(wire: Wire, budget: dynamodb.Budget) -> None:
    wire.fail("GetItem", failing_with(NoCredentialsError()))

    with pytest.raises(ServiceUnavailable):
        get_pet()

    assert budget.calls == 1


def test_cause_is_kept_for_the_log(wire: Wire, budget: dynamodb.Budget) -> None:  # noqa: ARG001
    wire.fail("GetItem", *[THROTTLED] * 3)

    with pytest.raises(ServiceUnavailable) as raised:
        get_pet()

    assert isinstance(raised.value.__cause__, ClientError)


def test_successful_calls_are_counted(budget: dynamodb.Budget) -> None:
    get_pet()
    get_pet()

    assert budget.calls == 2


# -- time --------------------------------------------------------------------------------------------------------------


def test_call_is_made_when_there_is_just_time_for_an_attempt(clock: Clock, budget: dynamodb.Budget) -> None:
    budget.deadline = clock.uptime + ATTEMPT

    assert get_pet() is None


def test_no_call_is_made_when_an_attempt_could_outlast_the_invocation(
    clock: Clock, wire: Wire, budget: dynamodb.Budget
) -> None:
    budget.deadline = clock.uptime + ATTEMPT - 0.001

    with pytest.raises(ServiceUnavailable) as raised:
        get_pet()

    assert isinstance(raised.value.__cause__, TimeoutError)
    assert wire.sent == []
    assert budget.calls == 0


@pytest.mark.parametrize(("left", "attempts"), [(PAUSE + ATTEMPT, 2), (PAUSE + ATTEMPT - 0.001, 1)])
@pytest.mark.usefixtures("no_jitter")
def test_no_retry_is_made_when_it_could_outlast_the_invocation(
    left: float, attempts: int, clock: Clock, wire: Wire, budget: dynamodb.Budget
) -> None:
    wire.fail("GetItem", slow(clock, 10 - left, lost_request), lost_request)

    with pytest.raises(ServiceUnavailable):
        get_pet()

    assert budget.calls == len(wire.sent) == attempts


@pytest.mark.parametrize("fault", [lost_request, THROTTLED, SERVER_ERROR])
@pytest.mark.usefixtures("no_jitter")
def test_invocation_ends_in_time_however_slow_every_attempt_is(
    fault: Fault, clock: Clock, wire: Wire, budget: dynamodb.Budget
) -> None:
    slowest = dynamodb._CONNECT_SECONDS + dynamodb._READ_SECONDS
    wire.fail("GetItem", *[slow(clock, slowest, fault)] * 9)

    with pytest.raises(ServiceUnavailable):
        get_pet()

    assert clock.uptime <= budget.deadline - dynamodb._MARGIN_SECONDS


@pytest.mark.usefixtures("no_jitter", "budget")
def test_pauses_between_attempts_stay_below_what_is_reckoned_with(clock: Clock, wire: Wire) -> None:
    wire.fail("GetItem", *[THROTTLED] * 2)

    assert get_pet() is None

    assert clock.pauses == [1, 2]
    assert max(clock.pauses) <= PAUSE


def asking_to_wait(text: str) -> Fault:
    """Throttle with the header by which AWS asks for a longer pause, in milliseconds."""

    def fault(carry_out: Callable[[], AWSResponse]) -> AWSResponse:
        response = THROTTLED(carry_out)
        response.headers["x-amz-retry-after"] = text
        return response

    return fault


@pytest.mark.parametrize(
    ("asked", "pauses"),
    [("0", [1, 2]), ("1500", [1.5, 2]), ("3000", [3]), ("600000", []), ("soon", [1, 2])],
)
@pytest.mark.usefixtures("no_jitter")
def test_invocation_ends_in_time_however_long_the_store_asks_to_wait(
    asked: str, pauses: list[float], clock: Clock, wire: Wire, budget: dynamodb.Budget
) -> None:
    wire.fail("GetItem", *[slow(clock, 0.5, asking_to_wait(asked))] * 9)

    with pytest.raises(ServiceUnavailable):
        get_pet()

    assert clock.pauses == pauses
    assert clock.uptime <= budget.deadline - dynamodb._MARGIN_SECONDS


def test_waits_of_the_client_are_the_ones_reckoned_with() -> None:
    config: Any = dynamodb.client.meta.config

    assert config.connect_timeout == dynamodb._CONNECT_SECONDS == 1
    assert config.read_timeout == dynamodb._READ_SECONDS == 2


# -- answers -----------------------------------------------------------------------------------------------------------

GARBLED = {
    "cut off": b'{"Item": {"id": {"N": "1"}, "na',
    "empty": b"",
    "no JSON": b"<html>",
    "no UTF-8": b"\xff\xfe",
    "bad UTF-8 inside": b'{"Item": {"name": {"S": "\xff"}}}',
}


@pytest.mark.parametrize("body", GARBLED.values(), ids=GARBLED)
@pytest.mark.usefixtures("budget")
def test_garbled_answer_is_unavailability(body: bytes, wire: Wire) -> None:
    wire.fail("GetItem", answer(200, body))
    with pytest.raises(ServiceUnavailable):
        get_pet()

    wire.fail("Query", answer(200, body))
    with pytest.raises(ServiceUnavailable):
        catalogue.list_pets(20, None, after=0)


@pytest.mark.usefixtures("budget")
def test_answer_that_is_cut_off_is_unavailability(wire: Wire) -> None:
    wire.fail("Query", cut_answer)

    with pytest.raises(ServiceUnavailable):
        catalogue.list_pets(20, None, after=0)


@pytest.mark.parametrize("operation", ["UpdateItem", "GetItem"])
def test_answer_with_a_wrong_checksum_is_asked_for_again(
    operation: str, wire: Wire, budget: dynamodb.Budget, clock: Clock
) -> None:
    wire.fail(operation, answer(200, b'{"Item": {}}', crc32=1))

    catalogue.create_pet({"name": "Rex", "categoryId": 1}, CALLER, None)
    get_pet()

    assert wire.sent.count(operation) == 2
    assert budget.calls == len(wire.sent)
    assert len(clock.pauses) == 1


@pytest.mark.usefixtures("budget")
def test_item_that_the_service_has_not_written_is_a_bug_told_without_its_content(wire: Wire) -> None:
    item = {"id": {"N": "1"}, "name": {"S": "secret name"}, "categoryId": {"N": "secret category"}}
    wire.fail("GetItem", answer(200, json.dumps({"Item": item}).encode()))

    with pytest.raises(ValueError, match=r"has not written: \[\{.*categoryId") as raised:
        get_pet()

    assert "secret" not in str(raised.value)
    assert raised.value.__suppress_context__


@pytest.mark.usefixtures("budget")
def test_errors_of_reads_are_parsed_though_good_answers_are_not(wire: Wire) -> None:
    wire.fail("GetItem", DENIED)

    with pytest.raises(ClientError) as raised:
        get_pet()

    assert raised.value.response["Error"] == {"Code": "AccessDeniedException", "Message": "from the store"}


# -- requests ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("budget")
def test_every_request_that_the_layer_sends_is_valid(wire: Wire) -> None:
    auth.look_up("0" * 64)
    catalogue.create_pet({"name": "Rex", "categoryId": 1, "status": "sold"}, CALLER, None)
    catalogue.create_pet({"name": "Rex", "categoryId": 1, "status": "sold"}, CALLER, "key")
    catalogue.get_pet(1)
    catalogue.list_pets(1, None, after=0)
    catalogue.list_pets(1, "sold", after=0)

    assert {name for name, _ in wire.parameters} == {
        "GetItem",
        "PutItem",
        "Query",
        "TransactWriteItems",
        "UpdateItem",
    }
    assert wire.invalid == []


@pytest.mark.usefixtures("budget")
def test_invalid_request_would_be_noticed(wire: Wire) -> None:
    key = {"pk": {"S": "pet"}, "id": {"N": "1"}}
    dynamodb.call(dynamodb.client.get_item, TableName=settings.ANIMALS_TABLE, Key=key, ConsistentRead=1)

    (problem,) = wire.invalid
    assert problem.startswith("GetItem: Invalid type for parameter ConsistentRead")
    wire.invalid.clear()


@pytest.mark.usefixtures("budget")
def test_requests_name_the_service_as_their_sender() -> None:
    agents: list[bytes | str] = []

    def note(request: Any, **_: object) -> None:
        agents.append(request.headers["User-Agent"])

    events: Any = dynamodb.client.meta.events
    events.register("before-send.dynamodb", note)
    try:
        get_pet()
    finally:
        events.unregister("before-send.dynamodb", note)

    assert agents in ([b"animal-store/1.0"], ["animal-store/1.0"])


@pytest.mark.usefixtures("budget")
def test_read_gives_the_model(tables: "DynamoDBClient") -> None:
    item: Any = {"pk": {"S": "pet"}, "id": {"N": "1"}, "name": {"S": "Rex"}, "categoryId": {"N": "3"}}
    tables.put_item(TableName=settings.ANIMALS_TABLE, Item=item)

    response = dynamodb.read(
        dynamodb.client.get_item,
        PET_ITEM,
        TableName=settings.ANIMALS_TABLE,
        Key={"pk": {"S": "pet"}, "id": {"N": "1"}},
    )

    assert response == {"Item": {"id": 1, "name": "Rex", "categoryId": 3}}
