"""Each file of events/ gets the answer that its name promises, and the one that openapi.yaml declares."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from animal_store import api_key as api_keys
from animal_store import cursor

from tests import openapi
from tests.example_key import EXAMPLE_KEY
from tests.unit.conftest import TEMPLATE, Context, Handler
from tools import ROOT

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

EVENTS = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "events").glob("*.json"))}
BASE_URL = "https://a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com/staging/v1"

REX = {"id": 1, "name": "Rex", "categoryId": 3, "status": "available"}
MIA = {"id": 2, "name": "Mia", "categoryId": 1}
BO = {"id": 3, "name": "Bo", "categoryId": 3, "status": "sold"}
KIRA = {"id": 4, "name": "Kira", "categoryId": 9223372036854775807, "status": "available"}
OTTO = {"id": 5, "name": "Otto", "categoryId": 2, "status": "pending"}
ANIMALS: list[dict[str, Any]] = [REX, MIA, BO, KIRA, OTTO]

EVERY_ANSWER = {"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
CHALLENGE = {"WWW-Authenticate": "Bearer"}
DEPRECATED = {
    "Deprecation": "@1764892800",
    "Sunset": "Thu, 05 Dec 2030 00:00:00 GMT",
    "Link": f'<{BASE_URL}/pets>; rel="successor-version"',
}


def next_link(query: str) -> dict[str, str]:
    return {"Link": f'<{BASE_URL}/pets?{query}>; rel="next"'}


def error(code: str, message: str, status: int) -> dict[str, Any]:
    return {"code": code, "message": message, "status": status}


UNAUTHORIZED = error("unauthorized", "Missing or invalid API key.", 401)
FOREIGN_CURSOR = "cursor: is not a cursor of this list; take it unchanged from the Link header of the page before."
NOT_FOUND = error("not_found", "The requested resource could not be found.", 404)


@dataclass(frozen=True)
class Expected:
    """The answer to an event, after the events `before` it; `headers` beside those that every answer has."""

    status: int
    body: object
    headers: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()


EXPECTED = {
    "list-200": Expected(200, ANIMALS),
    "list-200-filtered": Expected(
        200, [REX], next_link(f"limit=1&status=available&cursor={cursor.encode(1, 'available')}")
    ),
    "list-200-cursor": Expected(200, [BO, KIRA], next_link(f"limit=2&cursor={cursor.encode(4, None)}")),
    "list-400-limit": Expected(400, error("invalid_request", "limit: must be an integer from 1 to 100.", 400)),
    "list-400-limit-twice": Expected(400, error("invalid_request", "limit: must be given once.", 400)),
    "list-400-cursor": Expected(400, error("invalid_request", FOREIGN_CURSOR, 400)),
    "list-401": Expected(401, UNAUTHORIZED, CHALLENGE),
    "create-201": Expected(201, {"id": 6, "name": "Luna", "categoryId": 3, "status": "available"}),
    "create-201-idempotency-key": Expected(201, {"id": 6, "name": "Luna", "categoryId": 3}),
    "create-400-missing-member": Expected(400, error("invalid_request", "categoryId: is required.", 400)),
    "create-400-invalid-json": Expected(400, error("invalid_request", "The body is not valid JSON.", 400)),
    "create-401": Expected(401, UNAUTHORIZED, CHALLENGE),
    "create-415": Expected(415, error("unsupported_media_type", "Content-Type must be application/json.", 415)),
    "create-422": Expected(
        422,
        error("idempotency_key_reused", "Idempotency-Key has already been used with another body.", 422),
        before=("create-201-idempotency-key",),
    ),
    "get-200": Expected(200, REX, DEPRECATED),
    "get-401": Expected(401, UNAUTHORIZED, CHALLENGE | DEPRECATED),
    "get-404": Expected(404, NOT_FOUND, DEPRECATED),
    "get-404-not-an-id": Expected(404, NOT_FOUND, DEPRECATED),
}


@pytest.fixture
def store(tables: "DynamoDBClient") -> "DynamoDBClient":
    """Put the example key and five animals into the tables."""
    tables.put_item(
        TableName=TEMPLATE.tables["ApiKeysTable"].name,
        Item={"hash": {"S": api_keys.digest(EXAMPLE_KEY)}, "label": {"S": "example"}, "created": {"N": "1764892800"}},
    )
    animals = TEMPLATE.tables["AnimalsTable"].name
    tables.put_item(TableName=animals, Item={"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": "5"}})
    for animal in ANIMALS:
        item = {name: {"S" if isinstance(value, str) else "N": str(value)} for name, value in animal.items()}
        tables.put_item(TableName=animals, Item={"pk": {"S": "pet"}, **item})
    return tables


Invoke = Callable[[str], dict[str, Any]]


@pytest.fixture
def invoke(store: "DynamoDBClient", load_handler: Callable[[str], Handler], context: Context) -> Invoke:  # noqa: ARG001
    """Send an event to the function that template.yaml routes it to."""

    def send(name: str) -> dict[str, Any]:
        event = EVENTS[name]
        (function,) = [
            TEMPLATE.functions[route.function]
            for route in TEMPLATE.routes
            if (route.method, route.resource) == (event["httpMethod"], event["resource"])
        ]
        return load_handler(function.code.name)(event, context)

    return send


@pytest.mark.parametrize("name", EVENTS)
def test_event_gets_the_answer_that_its_name_promises(name: str, invoke: Invoke) -> None:
    expected = EXPECTED[name]
    for earlier in expected.before:
        invoke(earlier)

    answer = invoke(name)

    assert answer["statusCode"] == expected.status
    assert f"-{expected.status}" in name
    assert json.loads(answer["body"]) == expected.body
    assert answer["headers"] == EVERY_ANSWER | expected.headers
    assert answer["isBase64Encoded"] is False


@pytest.mark.parametrize("name", EVENTS)
def test_answer_is_the_one_that_the_document_declares(name: str, invoke: Invoke) -> None:
    event = EVENTS[name]
    for earlier in EXPECTED[name].before:
        invoke(earlier)

    answer = invoke(name)

    path = event["resource"].removeprefix("/v1")
    body = json.loads(answer["body"])
    assert openapi.problems_of_answer(event["httpMethod"], path, answer["statusCode"], answer["headers"], body) == []


def test_repeated_creation_is_answered_as_the_first_one(invoke: Invoke) -> None:
    first = invoke("create-201-idempotency-key")

    again = invoke("create-201-idempotency-key")

    assert again == first | {"headers": first["headers"] | {"Idempotency-Replayed": "true"}}
    assert openapi.problems_of_answer("POST", "/pets", 201, again["headers"], json.loads(again["body"])) == []


def test_every_expectation_has_its_event() -> None:
    assert EXPECTED.keys() == EVENTS.keys()


@pytest.mark.parametrize("name", EVENTS)
def test_event_is_consistent(name: str) -> None:
    event = EVENTS[name]
    context = event["requestContext"]

    assert event["headers"] == {key: values[-1] for key, values in event["multiValueHeaders"].items()}
    assert (event["queryStringParameters"] or {}) == {
        key: values[-1] for key, values in (event["multiValueQueryStringParameters"] or {}).items()
    }
    assert event["path"] == event["resource"].format_map(event["pathParameters"] or {})
    assert context["path"] == f"/{context['stage']}{event['path']}"
    assert (context["resourcePath"], context["httpMethod"]) == (event["resource"], event["httpMethod"])
    assert context["domainName"] == event["headers"]["Host"]
