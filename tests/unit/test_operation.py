"""How every operation runs: its response, the log, the metrics, and what nobody gets to see."""

import io
import json
from datetime import datetime
from typing import Any

import pytest
from animal_store import api_key, dynamodb, operation
from animal_store.errors import InternalError, ServiceError, ServiceUnavailable
from animal_store.operation import Response

from tests.support import handlers
from tests.support.example_key import EXAMPLE_KEY
from tests.support.fault_injection import DENIED, THROTTLED, Attempt, Fault, Wire, answering
from tests.support.handlers import EVENTS, SUCCESSES, Context
from tests.support.requests import Ask, Clock, event_of, lines

KEY_ID = api_key.digest(EXAMPLE_KEY)[:12]
successes = pytest.mark.parametrize("name", SUCCESSES)


@pytest.mark.usefixtures("wire")
def test_response_without_content_has_neither_body_nor_media_type() -> None:
    handler = operation.operation("deletePet")(lambda _: Response(204))

    response = handler(event_of("list_pets"), Context())
    assert (response["statusCode"], response["body"], "Content-Type" in response["headers"]) == (
        204,
        "",
        False,
    )


@pytest.mark.parametrize(("left", "status", "calls"), [(3.499, 503, 0), (3.5, 200, 2)])
def test_invocation_may_spend_what_lambda_leaves_it(
    left: float, status: int, calls: int, clock: Clock, wire: Wire
) -> None:
    assert handlers.invoke(EVENTS["list-200"], Context(left)).status == status

    assert len(wire.sent) == calls
    assert dynamodb.invocation.get().deadline == clock.uptime + left


def bug(_: Attempt) -> Any:
    raise KeyError("secret detail")


FAILED, NO_ANSWER = ("ERROR", "The operation failed."), ("WARNING", "The store did not answer.")


@successes
@pytest.mark.parametrize(
    ("fault", "error", "log", "cause"),
    [
        (bug, InternalError(), FAILED, "KeyError: 'secret detail'"),
        (DENIED, InternalError(), FAILED, "AccessDeniedException"),
        (THROTTLED, ServiceUnavailable(), NO_ANSWER, "ProvisionedThroughputExceededException"),
    ],
)
@pytest.mark.usefixtures("clock")
def test_cause_of_a_failure_is_told_to_the_log_and_not_to_the_client(
    name: str,
    wire: Wire,
    output: io.StringIO,
    *,
    fault: Fault,
    error: ServiceError,
    log: tuple[str, str],
    cause: str,
) -> None:
    wire.fail("GetItem", fault, fault, fault)

    response = handlers.invoke(EVENTS[name])

    assert response.body == {"code": error.code, "message": str(error), "status": response.status}
    assert handlers.problems(EVENTS[name], response) == []
    entry, request = lines(output)
    assert (entry["level"], entry["message"], entry["service"]) == (*log, "animal-store")
    assert cause in entry["exception"]
    assert entry["exception_name"]
    assert (
        datetime.fromisoformat(entry["timestamp"]).tzinfo is not None
    )  # without it Lambda ignores the level
    assert (request["Status"], request["Code"]) == (str(error.status), error.code)


@successes
def test_request_is_logged_and_counted_on_one_line(
    name: str, clock: Clock, wire: Wire, output: io.StringIO
) -> None:
    def slow(attempt: Attempt) -> Any:
        clock.advance(0.0125)
        return attempt.carry_out()

    wire.fail("GetItem", slow)
    response = handlers.invoke(EVENTS[name])

    (entry,) = lines(output)
    asked, declared = (
        EVENTS[name]["requestContext"]["requestId"],
        handlers.operation_of(EVENTS[name]),
    )
    assert (entry["request_id"], entry["Operation"], entry["Status"]) == (
        asked,
        declared.id,
        str(response.status),
    )
    assert (entry["KeyLabel"], entry["KeyId"]) == ("tests", KEY_ID)
    assert (entry["Latency"], entry["StoreCalls"]) == (12.5, len(wire.sent))
    assert entry.get("PetId") == (response.body["id"] if response.status == 201 else None)
    assert ("DeprecatedCalls" in entry) is declared.object.get("deprecated", False)


@pytest.mark.parametrize(("headers", "key_id"), [({"Authorization": []}, None), ({}, KEY_ID)])
def test_request_of_nobody_or_with_a_revoked_key_is_not_counted_as_a_holder_s(
    headers: dict[str, list[str]], key_id: str | None, ask: Ask, wire: Wire, output: io.StringIO
) -> None:
    handlers.add_key(handlers.client(wire.database), EXAMPLE_KEY, revoked={"N": "1"})

    ask("get_pet", headers=headers)

    (entry,) = lines(output)
    assert (entry["Status"], entry["Code"], entry.get("KeyId")) == ("401", "unauthorized", key_id)
    assert entry["StoreCalls"] == (1 if key_id else 0)
    assert entry.keys().isdisjoint({"KeyLabel", "PetId", "DeprecatedCalls", "exception"})


CUT = answering(400, b'{"__type": "ConditionalCheckFailed", "Item": {"Confidential')
FOREIGN = answering(200, b'{"Item": {"label": {"S": "x"}, "expires": {"N": "Confidential"}}}')
DENIALS = [(call, DENIED) for call in ("GetItem", "UpdateItem", "PutItem")]


@pytest.mark.parametrize(
    "fault", [(0,), *DENIALS, ("GetItem", THROTTLED), ("GetItem", FOREIGN), ("PutItem", CUT)]
)
@pytest.mark.usefixtures("clock")
def test_no_secret_gets_into_log_metrics_or_response(
    fault: tuple[Any, ...], ask: Ask, wire: Wire, output: io.StringIO
) -> None:
    unknown = api_key.generate("live")
    pet: dict[str, Any] = {"name": "Confidential", "categoryId": 76543210}
    bodies = [
        json.dumps(body)
        for body in (pet, pet | {"categoryId": "76543210"}, pet | {"name": ["Confidential"]})
    ]
    wire.fail(fault[0], *fault[1:] * 3)

    responses = [
        *(ask("create_pet", body=body) for body in (*bodies, bodies[0][:-1])),
        ask("create_pet", body=bodies[0], headers={"Idempotency-Key": ["Confidential key"]}),
        ask("list_pets", headers={"Authorization": [f"Bearer {unknown}"]}),
        ask("get_pet", pathParameters={"petId": "Confidential-id"}),
        *(
            ask("list_pets", multiValueQueryStringParameters={name: ["Confidential"]})
            for name in ("cursor", "status")
        ),
    ]

    for text in [
        output.getvalue(),
        *(response.text for response in responses if response.status != 201),
    ]:
        for secret in (
            EXAMPLE_KEY,
            unknown,
            EXAMPLE_KEY[12:],
            unknown[12:],
            "Bearer ",
            "Confidential",
            "76543210",
        ):
            assert secret not in text
