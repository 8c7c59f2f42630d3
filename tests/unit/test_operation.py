"""How every operation runs: its response, the log, the metrics, and what nobody gets to see."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from animal_store import api_key as api_keys
from animal_store import dynamodb, operation
from animal_store.errors import STATUS_OF_CODE, NotFound, ServiceError
from animal_store.operation import Response
from animal_store.request import Request

from tests import functions
from tests.example_key import EXAMPLE_KEY
from tests.fault_injection import DENIED, THROTTLED, Attempt, Fault, Wire
from tests.functions import EVENTS, SUCCESSES, Context, add_key
from tests.unit.conftest import Ask, Call, Clock, Output

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

REX = '{"name": "Rex", "categoryId": 3}'
NO_STORE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
INTERNAL = {"code": "internal_error", "message": ServiceError.message, "status": 500}

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(wire: Wire, context: Context) -> Run:  # noqa: ARG001 - the way to the key
    """Give what runs a function as an operation, with a valid key."""
    event = Call("list_pets").event()
    return lambda function: operation.operation("testPets")(function)(event, context)


def raising(error: Exception) -> Callable[[Request], Response]:
    def function(_: Request) -> Response:
        raise error

    return function


# -- the response ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "headers", "body"),
    [
        (Response(200, [], {"X-One": "1"}), {"Content-Type": "application/json", "X-One": "1"}, "[]"),
        (Response(204), {}, ""),
    ],
)
def test_response_is_what_api_gateway_takes(response: Response, headers: Any, body: str, run: Run) -> None:
    assert run(lambda _: response) == {
        "statusCode": response.status,
        "headers": NO_STORE | headers,
        "body": body,
        "isBase64Encoded": False,
    }


@pytest.mark.parametrize("error", [*ServiceError.__subclasses__(), lambda: NotFound("No such colour.")])
def test_each_error_is_an_error_object(error: Callable[[], ServiceError], run: Run) -> None:
    response = run(raising(error()))

    status = STATUS_OF_CODE[error().code]
    assert response["statusCode"] == status
    assert json.loads(response["body"]) == {"code": error().code, "message": str(error()), "status": status}
    assert response["headers"] == {"Content-Type": "application/json", **NO_STORE, **error().headers}


@pytest.mark.parametrize("name", SUCCESSES)
def test_every_operation_fails_as_it_declares(name: str, wire: Wire, output: Output) -> None:
    wire.fail("GetItem", DENIED)

    response = functions.invoke(EVENTS[name])

    assert (response.status, response.body) == (500, INTERNAL)
    assert functions.problems(EVENTS[name], response) == []
    assert "AccessDeniedException" in output.text


# -- failures inside ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyError("secret detail"), RecursionError("secret detail"), AssertionError()])
def test_bug_is_told_to_the_log_and_not_to_the_client(error: Exception, run: Run, output: Output) -> None:
    response = run(raising(error))

    assert (response["statusCode"], json.loads(response["body"])) == (500, INTERNAL)
    entry, request = output.lines
    assert (entry["level"], entry["message"]) == ("ERROR", "The operation failed.")
    assert entry["exception_name"] == type(error).__name__
    assert str(error) in entry["exception"]
    assert (request["Status"], request["Code"]) == ("500", "internal_error")


@pytest.mark.usefixtures("clock")
def test_store_that_stays_away_is_a_warning_with_the_cause(ask: Ask, wire: Wire, output: Output) -> None:
    wire.fail("Query", *[THROTTLED] * 3)

    assert ask("list_pets").status == 503

    warning, request = output.lines
    assert (warning["level"], warning["message"]) == ("WARNING", "The store did not answer.")
    assert "ProvisionedThroughputExceededException" in warning["exception"]
    assert (request["Status"], request["Code"]) == ("503", "service_unavailable")


def test_invocation_may_spend_what_lambda_leaves_it(clock: Clock, wire: Wire, context: Context) -> None:
    context.remaining_ms = 3_499
    assert functions.invoke(EVENTS["list-200"], context).status == 503
    assert wire.sent == []

    context.remaining_ms = 3_500
    assert functions.invoke(EVENTS["list-200"], context).status == 200
    assert dynamodb.budget.get().deadline == clock.uptime + 3.5


# -- the log and the metrics -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUCCESSES)
def test_request_is_logged_and_counted_on_one_line(name: str, clock: Clock, wire: Wire, output: Output) -> None:
    def slow(attempt: Attempt) -> Any:
        clock.advance(0.0125)
        return attempt.carry_out()

    wire.fail("GetItem", slow)
    event = EVENTS[name]

    response = functions.invoke(event)

    (entry,) = output.lines
    expected = {
        "level": "INFO",
        "request_id": event["requestContext"]["requestId"],
        "Operation": functions.operation_of(event).id,
        "Status": str(response.status),
        "KeyLabel": "tests",
        "KeyId": api_keys.digest(EXAMPLE_KEY)[:12],
        "Latency": 12.5,
        "StoreCalls": len(wire.sent),
    }
    assert entry.items() >= expected.items()
    assert entry.get("Code") == (response.body["code"] if response.status >= 400 else None)
    assert entry.get("PetId") == (response.body["id"] if response.status == 201 else None)
    assert ("DeprecatedCalls" in entry) is functions.operation_of(event).object.get("deprecated", False)


def test_request_of_nobody_is_logged_without_a_label(ask: Ask, output: Output) -> None:
    ask("get_pet", headers={"Authorization": []})

    (entry,) = output.lines
    assert entry.keys().isdisjoint({"KeyLabel", "KeyId", "PetId", "DeprecatedCalls", "exception"})
    assert (entry["Status"], entry["Code"], entry["StoreCalls"]) == ("401", "unauthorized", 0)


def test_request_with_a_revoked_key_is_logged_with_its_id_and_not_counted_as_its_holder_s(
    ask: Ask, api_key: str, tables: "DynamoDBClient", output: Output
) -> None:
    add_key(tables, api_key, revoked={"N": "1"})

    ask("get_pet")

    (entry,) = output.lines
    assert (entry["Status"], entry["KeyId"]) == ("401", api_keys.digest(api_key)[:12])
    assert entry.keys().isdisjoint({"KeyLabel", "DeprecatedCalls"})


def test_replayed_creation_is_logged_with_the_animal_of_the_first(ask: Ask, output: Output) -> None:
    for _ in range(2):
        ask("create_pet", body=REX, headers={"Idempotency-Key": ["key"]})

    assert [entry["PetId"] for entry in output.lines] == [1, 1]


def test_only_the_first_request_of_an_environment_is_a_cold_start(
    ask: Ask, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "_cold_start", True)

    ask("list_pets")
    ask("get_pet")

    assert [line.get("ColdStart") for line in output.requests] == [1, None]


@pytest.mark.parametrize(
    "faults",
    [{}, {"GetItem": DENIED}, {"GetItem": THROTTLED}, {"UpdateItem": DENIED}, {"PutItem": THROTTLED}],
)
@pytest.mark.usefixtures("clock")
def test_no_secret_gets_into_log_metrics_or_response(
    faults: dict[str, Fault], ask: Ask, api_key: str, wire: Wire, output: Output
) -> None:
    unknown = api_keys.generate("live")
    bodies = [
        '{"name": "Confidential", "categoryId": 76543210}',
        '{"name": "Confidential", "categoryId": "76543210"}',
        '{"name": ["Confidential"], "categoryId": 76543210}',
        '{"name": "Confidential", "categoryId": 76543210',
    ]
    for call, fault in faults.items():
        wire.fail(call, *[fault] * 3)

    responses = [
        ask("create_pet", body=body, headers={"Idempotency-Key": ["Confidential-key"]} if n % 2 else {})
        for n, body in enumerate(bodies)
    ]
    responses += [ask("list_pets", headers={"Authorization": [f"Bearer {unknown}"]})]
    responses += [ask("get_pet", path={"petId": "Confidential-id"})]
    responses += [ask("list_pets", query={"cursor": ["Confidential-cursor"], "status": ["Confidential-status"]})]

    refused = [response.text for response in responses if response.status != 201]
    for text in [output.text, *refused]:
        for secret in (api_key, unknown, api_key[12:], unknown[12:], "Bearer ", "Confidential", "76543210"):
            assert secret not in text


def test_what_cannot_be_an_id_is_not_looked_up(ask: Ask, wire: Wire) -> None:
    assert ask("get_pet", path={"petId": "x"}).status == 404
    assert len(wire.calls) == 1  # the key
