"""openapi.yaml agrees with models, errors, the functions' parameters and what answers for them.

That its examples are valid, and every operation asks for the API key, is Spectral's to say
(`make check`).
"""

import json
import re
from typing import Any

import pytest
from animal_store import errors, models, request
from pydantic import TypeAdapter

from tests.support import openapi
from tests.support.handlers import TEMPLATE
from tests.support.openapi import Operation
from tools import ROOT

COMPONENTS = openapi.document()["components"]
PATTERNS = re.findall("pattern: '(.+)'", (ROOT / "openapi.yaml").read_text("utf-8"))

# What JSON Schema says about a value; titles, descriptions, examples and formats are for readers.
RULES = {"type", "enum", "minimum", "maximum", "minLength", "maxLength", "default"}


def rules(schema: dict[str, Any], names: set[str] = RULES) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name in names}


def members_and_required(
    schema: dict[str, Any], names: set[str]
) -> tuple[dict[str, Any], set[str]]:
    """Return the rules of each member of an object, and which members it must have."""
    members = {
        name: rules(value, names) for name, value in schema["properties"].items()
    }
    return members, set(schema["required"])


@pytest.mark.parametrize(
    ("model", "compared"),
    [
        (models.NewPet, RULES),
        # It reads what the table holds, whose bounds creation has made sure of.
        (models.Pet, {"type", "enum"}),
        (models.Error, {"type"}),
    ],
)
def test_schema_is_the_model_of_the_same_name(model: type, compared: set[str]) -> None:
    declared = openapi.schema(model.__name__)
    own = TypeAdapter(model).json_schema(by_alias=False)

    assert members_and_required(declared, compared) == members_and_required(
        own, compared
    ), (
        f"{model.__name__} differs between openapi.yaml and models.py: bring the two in step."
    )


def test_bounds_that_no_model_has_are_the_ones_of_the_functions() -> None:
    limit, pet = (
        COMPONENTS["parameters"]["Limit"]["schema"],
        openapi.schema("Pet")["properties"],
    )

    assert rules(limit) == {
        "type": "integer",
        "minimum": 1,
        "maximum": 100,
        "default": 20,
    }
    assert COMPONENTS["schemas"]["Pets"]["maxItems"] == limit["maximum"]
    assert rules(pet.pop("id")) == {
        "type": "integer",
        "minimum": 1,
        "maximum": 2**63 - 1,
    }
    assert pet == openapi.schema("NewPet")["properties"]


def test_idempotency_keys_of_document_and_service_are_the_same() -> None:
    declared = COMPONENTS["parameters"]["IdempotencyKey"]["schema"]
    pattern = request._IDEMPOTENCY_KEY.pattern

    assert declared["pattern"] == '^("[!-~]{1,255}"|[!#-~]([!-~]{0,253}[!#-~])?)$'
    assert (
        pattern == r'"(?P<quoted>[!-~]{1,255})"|(?P<bare>[!#-~]([!-~]{0,253}[!#-~])?)'
    )
    assert declared["maxLength"] == 255 + len('""')


def test_document_names_each_character_that_the_service_takes_for_white_space() -> None:
    """That the service refuses each of them is in the contract."""
    description = " ".join(
        openapi.schema("NewPet")["properties"]["name"]["description"].split()
    )

    assert (
        "U+0009 to U+000D, U+001C to U+0020, U+0085, U+00A0, U+1680, U+2000 to U+200A, U+2028, "
        "U+2029, U+202F, U+205F, U+3000 and U+FEFF"
    ) in description


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_have_only_tokens_that_every_language_knows(pattern: str) -> None:
    # One escape of a character once made every generated Ruby client fail to load
    # (JSON Schema, core, 6.4).
    tokens = pattern.replace(r"\s", "").replace(r"\S", "")

    assert tokens.isascii()
    assert tokens.isprintable()
    for unknown in ("\\", "(?", "[:", "&&", "++", "*+"):
        assert unknown not in tokens


GATEWAY = [
    json.loads(each["ResponseTemplates"]["application/json"])
    for each in TEMPLATE.gateway_responses.values()
]
KINDS: list[type[errors.ServiceError]] = [
    errors.ServiceError,
    *errors.ServiceError.__subclasses__(),
]
LAYER = [
    {"code": kind.code, "message": str(kind()), "status": kind().status}
    for kind in KINDS
]


def test_both_names_of_the_challenge_have_the_same_value() -> None:
    headers = COMPONENTS["headers"]
    remapped = headers["X-Amzn-Remapped-WWW-Authenticate"]

    assert remapped["schema"] == headers["WWW-Authenticate"]["schema"]


def test_both_stages_end_in_the_version_and_the_default_server_is_this_machine() -> (
    None
):
    local, *stages = (server["url"] for server in openapi.document()["servers"])

    assert local == "http://127.0.0.1:3000/v1"
    assert [url.split("amazonaws.com")[1] for url in stages] == [
        "/production/v1",
        "/staging/v1",
    ]


def test_codes_are_the_closed_list_of_the_layer() -> None:
    # API Gateway answers 502 for a function that crashed: to clients the same as a failure that
    # the function reports.
    of_the_layer = {
        code: {status} for code, status in errors.STATUS_OF_CODE.items()
    } | {"internal_error": {500, 502}}

    assert openapi.statuses_of_codes() == of_the_layer


@openapi.each_operation
def test_each_example_of_a_failure_is_what_the_layer_or_the_gateway_answers(
    operation: Operation,
) -> None:
    assert operation.responses.keys() >= {401, 429, 500, 502, 503, 504}
    for status in operation.responses.keys() - {200, 201, 204, 400}:
        for example in openapi.examples(operation.responses[status]):
            assert example in GATEWAY + LAYER
            assert status in openapi.statuses_of_codes()[example["code"]]


HEADERS = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}
REX = '{"id": 1, "name": "Rex", "categoryId": 1}'


CREATE, *_ = (each for each in openapi.operations() if each.id == "createPet")
DELETE = Operation("deletePet", "DELETE", "/pets/{petId}", {204: {}})


@pytest.mark.parametrize(
    ("status", "headers", "body", "problem"),
    [
        (418, {}, REX, "418 is not declared"),
        (
            201,
            {"Content-Type": "text/html"},
            REX,
            "'application/json' was expected",
        ),
        (
            201,
            {"Cache-Control": "public"},
            REX,
            "'no-store' was expected",
        ),
        (201, {"X-Extra": "1"}, REX, "'x-extra' was unexpected"),
        (503, {}, REX, "'retry-after' is a required property"),
        (201, {}, REX.replace("1", "1.0"), "1.0 is not of type 'integer'"),
        (
            201,
            {},
            REX.replace("{", '{"tag": 1, '),
            "'tag' was unexpected",
        ),
        (
            400,
            {},
            '{"code": "newer", "message": "x", "status": 400}',
            "'newer' is not one of",
        ),
        (
            400,
            {},
            '{"code": "invalid_request", "message": "KeyError", "status": 400}',
            "'KeyError' should not be valid",
        ),
    ],
)
def test_problems_of_a_response_are_found(
    status: int, headers: dict[str, str], body: str, problem: str
) -> None:
    found = openapi.problems(CREATE, status, HEADERS | headers, body, in_process=True)

    assert problem in str(found)


def test_a_right_response_has_no_problems() -> None:
    assert openapi.problems(CREATE, 201, HEADERS, REX, in_process=True) == []
    assert openapi.problems(DELETE, 204, {}, "") == []
    assert openapi.problems(DELETE, 204, {}, "null") == [
        "a body where none is declared"
    ]
