"""How every operation runs: the order of checks, the headers, the log, the metrics, and what nobody gets to see."""

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from animal_store import api_key as api_keys
from animal_store import dynamodb, operation, settings
from animal_store.errors import STATUS_OF_CODE, NotFound, ServiceError
from animal_store.operation import Response
from animal_store.request import Request

from tests.unit.conftest import Answer, Ask, Call, Clock, Context, Output
from tests.unit.fault_injection import DENIED, THROTTLED, Fault, Wire, answer, lost_request

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

OPERATIONS = {"list_pets": "listPets", "create_pet": "createPet", "get_pet": "getPet"}
REX = '{"name": "Rex", "categoryId": 3}'
EVERY_ANSWER = {"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
DEPRECATED = {
    "Deprecation": "@1764892800",
    "Sunset": "Thu, 05 Dec 2030 00:00:00 GMT",
    "Link": '<https://a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com/staging/v1/pets>; rel="successor-version"',
}
INTERNAL = {"code": "internal_error", "message": "The service failed. The failure has been logged.", "status": 500}
UNAVAILABLE = {
    "code": "service_unavailable",
    "message": "The service cannot answer at the moment. Retry later.",
    "status": 503,
}

Run = Callable[..., Answer]


@pytest.fixture
def run(api_key: str, context: Context) -> Run:
    """Give what runs a function as an operation, with a valid key."""

    def run(function: Callable[[Request], Response], **differences: Any) -> Answer:
        event = Call("list_pets", headers={"Authorization": [f"Bearer {api_key}"]}, **differences).event()
        answer = operation.operation("testPets")(function)(event, context)
        return Answer(answer["statusCode"], answer["headers"], json.loads(answer["body"]))

    return run


def raising(error: Exception) -> Callable[[Request], Response]:
    def function(_: Request) -> Response:
        raise error

    return function


# -- the answer --------------------------------------------------------------------------------------------------------


def test_answer_is_what_api_gateway_takes(api_key: str, context: Context) -> None:
    event = Call("list_pets", headers={"Authorization": [f"Bearer {api_key}"]}).event()

    answer = operation.operation("testPets")(lambda _: Response(200, [], {"X-One": "1"}))(event, context)

    assert answer == {
        "statusCode": 200,
        "headers": EVERY_ANSWER | {"X-One": "1"},
        "body": "[]",
        "isBase64Encoded": False,
    }


def test_text_is_answered_as_it_is_stored(run: Run) -> None:
    pet: Any = {"id": 2**63 - 1, "name": '\U0001f415"\\\0\u2028', "categoryId": -(2**63)}

    assert run(lambda _: Response(200, pet)).body == pet


@pytest.mark.parametrize("error", ServiceError.__subclasses__())
def test_each_error_is_answered_as_an_error_object(error: type[ServiceError], run: Run) -> None:
    answer = run(raising(error()))

    assert answer.status == STATUS_OF_CODE[error.code]
    assert answer.body == {"code": error.code, "message": error.message, "status": answer.status}
    assert answer.headers == EVERY_ANSWER | error.headers


def test_error_tells_its_own_message_when_it_has_one(run: Run) -> None:
    assert run(raising(NotFound("No such colour."))).body["message"] == "No such colour."


@pytest.mark.usefixtures("clock")
def test_errors_that_clients_react_to_have_their_headers(ask: Ask, wire: Wire) -> None:
    assert ask("list_pets", headers={"Authorization": ["Bearer x"]}).headers["WWW-Authenticate"] == "Bearer"
    wire.fail("GetItem", THROTTLED, THROTTLED, THROTTLED)
    assert ask("list_pets").headers["Retry-After"] == "1"


def test_codes_are_the_closed_list_of_the_interface() -> None:
    assert dict(STATUS_OF_CODE) == {
        "invalid_request": 400,
        "unauthorized": 401,
        "not_found": 404,
        "payload_too_large": 413,
        "unsupported_media_type": 415,
        "idempotency_key_reused": 422,
        "too_many_requests": 429,
        "internal_error": 500,
        "service_unavailable": 503,
        "timeout": 504,
    }


@pytest.mark.parametrize("folder", OPERATIONS)
@pytest.mark.parametrize(
    "differences",
    [
        {"query": {"limit": ["0"]}, "body": "{", "pet_id": "x"},
        {"headers": {"Content-Type": ["text/plain"]}, "body": "x"},
    ],
)
def test_nothing_is_said_about_a_request_before_its_key_is_known(
    folder: str, differences: dict[str, Any], ask: Ask
) -> None:
    headers = differences.get("headers", {}) | {"Authorization": []}

    answer = ask(folder, **differences | {"headers": headers})

    assert answer.status == 401
    assert answer.body == {"code": "unauthorized", "message": "Missing or invalid API key.", "status": 401}


# -- deprecation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "differences", "fault"),
    [
        (200, {}, None),
        (404, {"pet_id": "2"}, None),
        (404, {"pet_id": "x"}, None),
        (401, {"headers": {"Authorization": ["Bearer x"]}}, None),
        (503, {}, lost_request),
        (500, {}, DENIED),
    ],
)
@pytest.mark.usefixtures("clock")
def test_every_answer_of_the_deprecated_operation_says_so(
    status: int, differences: dict[str, Any], fault: Any, ask: Ask, wire: Wire
) -> None:
    ask("create_pet", body=REX)
    wire.fail("GetItem", *[fault] * 3 if fault else [])

    answer = ask("get_pet", **differences)

    assert answer.status == status
    assert answer.headers.items() >= (EVERY_ANSWER | DEPRECATED).items()


@pytest.mark.parametrize("folder", ["list_pets", "create_pet"])
def test_other_operations_are_not_deprecated(folder: str, ask: Ask, output: Output) -> None:
    assert ask(folder, body=REX).headers.keys().isdisjoint(DEPRECATED)
    assert not any("DeprecatedCalls" in line for line in output.requests)


@pytest.mark.parametrize("pet_id", ["1", "2", "x"])
def test_deprecated_call_is_counted_with_the_caller_s_label(pet_id: str, ask: Ask, output: Output) -> None:
    ask("get_pet", pet_id=pet_id)

    (line,) = output.requests
    assert (line["Operation"], line["KeyLabel"], line["DeprecatedCalls"]) == ("getPet", "unit tests", 1)


def test_deprecated_call_of_nobody_is_not_counted(ask: Ask, output: Output) -> None:
    ask("get_pet", headers={"Authorization": []})

    assert not any("DeprecatedCalls" in line for line in output.requests)


# -- failures inside ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyError("secret detail"), RecursionError("secret detail"), AssertionError()])
def test_bug_is_told_to_the_log_and_not_to_the_client(error: Exception, run: Run, output: Output) -> None:
    answer = run(raising(error))

    assert (answer.status, answer.body) == (500, INTERNAL)
    entry, request = output.lines
    assert (entry["level"], entry["message"]) == ("ERROR", "The operation failed.")
    assert entry["exception_name"] == type(error).__name__
    assert str(error) in entry["exception"]
    assert (request["Status"], request["Code"]) == ("500", "internal_error")


def test_refusal_by_the_store_is_a_bug_whose_details_are_in_the_log(ask: Ask, wire: Wire, output: Output) -> None:
    ask("list_pets")
    wire.fail("Query", DENIED)

    answer = ask("list_pets")

    assert (answer.status, answer.body) == (500, INTERNAL)
    assert "Retry-After" not in answer.headers
    assert "AccessDeniedException" in output.text


@pytest.mark.parametrize("operation", ["GetItem", "Query"])
@pytest.mark.usefixtures("clock")
def test_store_that_stays_away_is_503_and_a_warning_with_the_cause(
    operation: str, ask: Ask, wire: Wire, output: Output
) -> None:
    wire.fail(operation, *[THROTTLED] * 3)

    answer = ask("list_pets")

    assert (answer.status, answer.body) == (503, UNAVAILABLE)
    warning, request = output.lines
    assert (warning["level"], warning["message"]) == ("WARNING", "The store did not answer.")
    assert "ProvisionedThroughputExceededException" in warning["exception"]
    assert (request["Status"], request["Code"]) == ("503", "service_unavailable")


def test_client_s_own_mistake_leaves_no_trace_of_a_stack(ask: Ask, output: Output) -> None:
    ask("list_pets", query={"limit": ["0"]})
    ask("get_pet", pet_id="9")

    assert [entry["level"] for entry in output.lines] == ["INFO", "INFO"]
    assert not any("exception" in entry for entry in output.lines)


# -- time --------------------------------------------------------------------------------------------------------------


def test_invocation_may_spend_what_lambda_leaves_it(ask: Ask, clock: Clock, context: Context, wire: Wire) -> None:
    context.remaining_ms = 3_499
    assert ask("list_pets").status == 503
    assert wire.sent == []

    context.remaining_ms = 3_500
    assert ask("list_pets").status == 200
    assert dynamodb.budget.get().deadline == clock.uptime + 3.5


# -- the log and the metrics -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", OPERATIONS)
def test_request_is_logged_and_counted_on_one_line(
    folder: str, ask: Ask, clock: Clock, wire: Wire, output: Output
) -> None:
    def slow(carry_out: Callable[[], Any]) -> Any:
        clock.advance(0.0125)
        return carry_out()

    wire.fail("GetItem", slow)

    status = ask(folder, body=REX).status

    (entry,) = output.lines
    expected = {
        "level": "INFO",
        "request_id": Call(folder).event()["requestContext"]["requestId"],
        "Operation": OPERATIONS[folder],
        "Status": str(status),
        "KeyLabel": "unit tests",
        "Latency": 12.5,
        "StoreCalls": {"list_pets": 2, "create_pet": 3, "get_pet": 2}[folder],
    }
    assert entry.items() >= expected.items()
    assert entry.get("Code") == ("not_found" if folder == "get_pet" else None)
    assert re.fullmatch(r"[0-9a-f]{12}", entry["KeyId"])
    assert entry.get("PetId") == (1 if folder == "create_pet" else None)


def test_request_of_nobody_is_logged_without_a_label(ask: Ask, output: Output) -> None:
    ask("list_pets", headers={"Authorization": []})

    (entry,) = output.lines
    assert entry.keys().isdisjoint({"KeyLabel", "KeyId", "PetId"})
    assert (entry["Status"], entry["Code"], entry["StoreCalls"]) == ("401", "unauthorized", 0)


def test_request_with_a_revoked_key_is_logged_with_its_id_and_not_counted_as_its_holder_s(
    ask: Ask, api_key: str, tables: "DynamoDBClient", output: Output
) -> None:
    item = {"hash": {"S": api_keys.digest(api_key)}, "label": {"S": "x"}, "revoked": {"N": "1"}}
    tables.put_item(TableName=settings.API_KEYS_TABLE, Item=item)

    ask("get_pet")

    (entry,) = output.lines
    assert (entry["Status"], entry["KeyId"]) == ("401", api_keys.digest(api_key)[:12])
    assert entry.keys().isdisjoint({"KeyLabel", "DeprecatedCalls"})


def test_replayed_creation_is_logged_with_the_animal_of_the_first(ask: Ask, output: Output) -> None:
    for _ in range(2):
        ask("create_pet", body=REX, headers={"Idempotency-Key": ["key"]})

    assert [entry["PetId"] for entry in output.lines] == [1, 1]


def test_retries_are_counted_as_calls_of_the_store(ask: Ask, wire: Wire, output: Output, clock: Clock) -> None:
    wire.fail("Query", lost_request, lost_request)

    ask("list_pets")

    assert clock.pauses != []
    assert [line["StoreCalls"] for line in output.requests] == [4]


def test_error_is_counted_by_its_code_and_success_is_not(ask: Ask, output: Output) -> None:
    ask("list_pets")
    assert not any("Errors" in line for line in output.requests)

    ask("list_pets", query={"limit": ["0"]})

    *_, line = output.requests
    assert (line["Operation"], line["Code"], line["Errors"]) == ("listPets", "invalid_request", 1)


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
def test_no_secret_gets_into_log_metrics_or_answer(
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

    answers = [
        ask("create_pet", body=body, headers={"Idempotency-Key": ["Confidential-key"]} if n % 2 else {})
        for n, body in enumerate(bodies)
    ]
    answers += [ask("list_pets", headers={"Authorization": [f"Bearer {unknown}"]})]
    answers += [ask("get_pet", pet_id="Confidential-id")]
    answers += [ask("list_pets", query={"cursor": ["Confidential-cursor"], "status": ["Confidential-status"]})]

    refused = [str(answer) for answer in answers if answer.status != 201]
    for text in [output.text, *refused]:
        for secret in (api_key, unknown, api_key[12:], unknown[12:], "Bearer ", "Confidential", "76543210"):
            assert secret not in text


def test_unwritten_item_in_the_store_is_told_without_its_content(ask: Ask, wire: Wire, output: Output) -> None:
    ask("list_pets")
    item = {"id": {"N": "1"}, "name": {"S": "Confidential"}, "categoryId": {"N": "Confidential"}}
    wire.fail("Query", answer(200, json.dumps({"Items": [item]}).encode()))

    assert ask("list_pets").body == INTERNAL

    assert "the store has an item that the service has not written" in output.text
    assert "Confidential" not in output.text
