"""openapi.yaml agrees with the models, the list of errors, the functions' parameters and template.yaml."""

import re
import tomllib
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from animal_store import errors, models, validators
from animal_store.auth import Caller
from animal_store.pet_status import PET_STATUSES
from animal_store.request import Request
from pydantic import TypeAdapter

from tests import openapi
from tests.functions import TEMPLATE
from tests.openapi import Operation
from tools import ROOT

COMPONENTS = openapi.document()["components"]

# What JSON Schema says about a value; the rest (titles, descriptions, examples, formats) is for readers.
RULES = {"type", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern", "default"}


def rules(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name in RULES}


def schema_of(model: type) -> dict[str, Any]:
    """Return pydantic's own JSON schema of a model."""
    return TypeAdapter(model).json_schema(by_alias=False)


# -- models ------------------------------------------------------------------------------------------------------------


def test_new_pet_is_the_model_of_the_same_name() -> None:
    declared, model = openapi.schema("NewPet"), schema_of(models.NewPet)

    assert {name: rules(value) for name, value in declared["properties"].items()} == {
        name: rules(value) for name, value in model["properties"].items()
    }
    assert set(declared["required"]) == set(model["required"])


def test_pet_is_a_new_pet_with_an_id_in_the_document_and_in_the_model() -> None:
    # The model also reads what the table holds, so it leaves out the bounds that creation has made sure of.
    pet, new, model = openapi.schema("Pet"), openapi.schema("NewPet"), schema_of(models.Pet)

    assert pet["properties"] == {**new["properties"], "id": pet["properties"]["id"]}
    assert set(pet["required"]) == set(model["required"]) == {"id", *new["required"]}
    assert rules(pet["properties"]["id"]) == {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}
    assert {name: (member["type"], member.get("enum")) for name, member in pet["properties"].items()} == {
        name: (member["type"], member.get("enum")) for name, member in model["properties"].items()
    }


def test_error_has_the_members_of_the_model_and_no_others() -> None:
    declared, model = openapi.schema("Error"), schema_of(models.Error)

    assert {name: value["type"] for name, value in declared["properties"].items()} == {
        name: value["type"] for name, value in model["properties"].items()
    }
    assert set(declared["required"]) == set(model["required"]) == {"code", "message", "status"}
    assert COMPONENTS["schemas"]["Error"]["additionalProperties"] is False


def test_values_that_the_functions_know_are_the_declared_ones() -> None:
    limit = COMPONENTS["parameters"]["Limit"]["schema"]

    assert tuple(COMPONENTS["schemas"]["PetStatus"]["enum"]) == PET_STATUSES
    assert rules(limit) == {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
    assert COMPONENTS["schemas"]["Pets"]["maxItems"] == limit["maximum"]


@pytest.mark.parametrize(
    ("valid", "keys"),
    [
        (True, ["a", "!", "x" * 255, 'a"b', '"quoted"', f'"{"x" * 255}"', '""a""', '"""']),
        (False, ["", "x" * 256, "two words", '""', '"', '"a', 'a"', f'"{"x" * 256}"', "\u00e9", "\x7f"]),
    ],
)
def test_document_and_service_take_and_refuse_the_same_idempotency_keys(keys: list[str], *, valid: bool) -> None:
    declared = COMPONENTS["parameters"]["IdempotencyKey"]["schema"]
    for key in keys:
        request = Request({"multiValueHeaders": {"Idempotency-Key": [key]}}, Caller("hash", "label"))
        with nullcontext() if valid else pytest.raises(errors.InvalidRequest):
            request.idempotency_key()
        assert (openapi.errors(key, declared) == []) is valid, key


def test_white_space_is_the_same_for_document_prose_and_service() -> None:
    name = openapi.schema("NewPet")["properties"]["name"]
    characters = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000]

    def is_refused(character: str) -> bool:
        try:
            validators.NEW_PET.python({"name": character, "categoryId": 1})
        except ValueError:
            return True
        return False

    expected = {character for character in characters if character.isspace()} | {"\ufeff"}
    ranges = re.findall(r"U\+([0-9A-F]{4})(?: to U\+([0-9A-F]{4}))?", name["description"])
    told = {chr(code) for first, last in ranges for code in range(int(first, 16), int(last or first, 16) + 1)}
    assert told == expected
    assert {character for character in characters if not re.search(name["pattern"], character)} == expected
    assert set(filter(is_refused, characters)) == expected


def test_limits_are_those_of_the_stages() -> None:
    prose = openapi.document()["info"]["description"]
    told = dict(re.findall(r"^\| ([a-z].*?) +\| (.+? \| .+?) \|$", prose, re.MULTILINE))
    rows = {
        "ThrottlingRate": "requests per second for each operation, all clients together",
        "ThrottlingBurst": "requests at once for each operation, all clients together (burst)",
        "RequestsPerKey": "requests per minute with one API key",
        "RequestsPerAddress": "requests per minute from one address",
    }
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    parameters = r"^  ((?:Throttling|RequestsPer)\w+):\n(?:    .*\n)*?    Default: (\d+)$"
    defaults = re.findall(parameters, (ROOT / "template.yaml").read_text(), re.MULTILINE)
    for parameter, default in defaults:
        values = []
        for stage in ("production", "staging"):
            given = dict(pair.split("=", 1) for pair in config[stage]["deploy"]["parameters"]["parameter_overrides"])
            values.append(f"{int(given.get(parameter, default)):,}")
        assert told[rows[parameter]] == " | ".join(values)
    assert len(defaults) >= 2


# -- operations --------------------------------------------------------------------------------------------------------


def test_operations_are_the_routes_of_the_template() -> None:
    declared = {(operation.method, f"/v1{operation.path}") for operation in openapi.operations()}

    assert declared == {(route.method, route.resource) for route in TEMPLATE.routes}


def test_operations_of_the_interface_are_there() -> None:
    assert {("listPets", "GET", "/pets"), ("createPet", "POST", "/pets"), ("getPet", "GET", "/pets/{petId}")} <= {
        (operation.id, operation.method, operation.path) for operation in openapi.operations()
    }


def test_every_operation_asks_for_the_api_key() -> None:
    assert openapi.document()["security"] == [{"bearerAuth": []}]
    assert not [operation.id for operation in openapi.operations() if "security" in operation.object]
    scheme = COMPONENTS["securitySchemes"]["bearerAuth"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")


def test_both_stages_end_in_the_version_and_the_default_server_is_this_machine() -> None:
    local, *servers = openapi.document()["servers"]

    assert local["url"] == "http://127.0.0.1:3000/v1"
    assert [server["description"] for server in servers] == ["Production", "Staging"]
    for server in servers:
        assert server["url"].endswith(f"/{server['description'].lower()}/v1")
        assert set(re.findall(r"{(\w+)}", server["url"])) == server["variables"].keys()


# -- errors ------------------------------------------------------------------------------------------------------------


def test_codes_are_the_closed_list_of_the_layer() -> None:
    # API Gateway answers 502 for a function that crashed: to clients the same as a failure that the function reports.
    of_the_layer = {code: {status} for code, status in errors.STATUS_OF_CODE.items()} | {"internal_error": {500, 502}}

    assert openapi.statuses_of_codes() == of_the_layer


RESPONSES = [(operation, status) for operation in openapi.operations() for status in sorted(operation.statuses)]
BY_API_GATEWAY = {429, 502, 504}


@pytest.mark.parametrize(("operation", "status"), RESPONSES)
def test_each_response_has_its_headers_and_valid_examples(operation: Operation, status: int) -> None:
    response = operation.response(status)
    headers, deprecated = response["headers"].keys(), operation.object.get("deprecated", False)

    assert {"Cache-Control", "X-Content-Type-Options"} <= headers
    assert ("WWW-Authenticate" in headers) is (status == 401)
    assert ("Retry-After" in headers) is (status in {429, 503, 504})
    assert ({"Deprecation", "Sunset", "Link"} <= headers) is (deprecated and status not in BY_API_GATEWAY)
    if "content" in response:
        schema = response["content"]["application/json"]["schema"]
        # Above 10 MB the gateway makes the response, without members that can be relied on.
        name = "IncompleteError" if status == 413 else "Error"
        assert (schema == {"$ref": f"#/components/schemas/{name}"}) is (status >= 400)
        assert openapi.examples(response)
        for example in openapi.examples(response):
            assert openapi.errors(example, schema) == []
            assert status < 400 or status in openapi.statuses_of_codes()[example["code"]]


@pytest.mark.parametrize("operation", openapi.operations(), ids=lambda operation: operation.id)
def test_each_operation_may_fail_and_has_valid_examples(operation: Operation) -> None:
    assert operation.statuses >= {401, 429, 500, 502, 503, 504}
    if body := operation.object.get("requestBody"):
        schema = body["content"]["application/json"]["schema"]
        assert not [problem for example in openapi.examples(body) for problem in openapi.errors(example, schema)]


def answered_by_themselves() -> Iterator[Any]:
    """Yield the Error objects that the layer's classes and the template's gateway responses make."""
    kinds: list[type[errors.ServiceError]] = [errors.ServiceError, *errors.ServiceError.__subclasses__()]
    for kind in kinds:
        error = kind()
        yield {"code": error.code, "message": str(error), "status": error.status}
    for response in TEMPLATE.gateway_responses.values():
        yield openapi.strict_json(response["ResponseTemplates"]["application/json"])


@pytest.mark.parametrize(("operation", "status"), [each for each in RESPONSES if each[1] > 401])
def test_each_example_of_a_failure_is_a_response_that_the_service_gives(operation: Operation, status: int) -> None:
    for example in openapi.examples(operation.response(status)):
        assert example in list(answered_by_themselves())


@pytest.mark.parametrize("kind", TEMPLATE.gateway_responses)
def test_each_error_that_the_gateway_makes_is_an_error_object(kind: str) -> None:
    response = TEMPLATE.gateway_responses[kind]

    body = openapi.strict_json(response["ResponseTemplates"]["application/json"])

    assert openapi.errors(body, {"$ref": "#/components/schemas/Error"}) == []
    assert body["status"] in openapi.statuses_of_codes()[body["code"]]
    assert response.get("StatusCode") in {None, body["status"]}


# -- other examples ----------------------------------------------------------------------------------------------------


def described_values() -> Iterator[Any]:
    for kind in ("parameters", "headers"):
        for name, value in COMPONENTS[kind].items():
            if "example" in value:
                yield pytest.param(value["example"], value["schema"], id=name)
    for name, schema in COMPONENTS["schemas"].items():
        members = openapi.schema(name)["properties"] if "properties" in schema or "allOf" in schema else {}
        for key, member in {**members, "": schema}.items():
            for example in member.get("examples", []):
                yield pytest.param(example, member, id=f"{name}.{key}")


@pytest.mark.parametrize(("example", "schema"), [*described_values()])
def test_other_examples_are_valid(example: object, schema: dict[str, Any]) -> None:
    assert openapi.errors(example, schema) == []


# -- the check of responses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"status": 418}, "418 is not declared"),
        ({"headers": {"Content-Type": "text/html"}}, "Content-Type is text/html"),
        ({"headers": {"Cache-Control": "public"}}, "Cache-Control: 'no-store' was expected"),
        ({"headers": {"X-Extra": "1"}}, "x-extra is not declared"),
        ({"body": '{"id": 1, "name": "Rex"}'}, "'categoryId' is a required property"),
        ({"body": '{"id": 1.0, "name": "Rex", "categoryId": 1}'}, "1.0 is not of type 'integer'"),
        ({"body": '{"id": 1, "name": "Rex", "categoryId": 1, "tag": 1}'}, "the members {'tag'} are not declared"),
        ({"body": '{"id": 1, "id": 1}'}, "the body is not JSON: a member is given twice"),
        ({"body": "NaN"}, "the body is not JSON: NaN"),
        ({"status": 400, "body": '{"code": "unauthorized", "message": "x", "status": 401}'}, "with the status 400"),
        ({"status": 400, "body": '{"code": "newer", "message": "x", "status": 400}'}, "with the status 400"),
        ({"status": 400, "body": '{"code": "invalid_request", "message": "KeyError", "status": 400}'}, "internals"),
    ],
)
def test_problems_of_a_response_are_found(change: dict[str, Any], problem: str) -> None:
    create = next(operation for operation in openapi.operations() if operation.id == "createPet")
    good: dict[str, Any] = {"status": 201, "body": '{"id": 1, "name": "Rex", "categoryId": 1}'}
    headers = {
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    assert openapi.problems(create, **good, headers=headers, in_process=True) == []

    bad = {**good, **change, "headers": headers | change.get("headers", {})}
    assert problem in str(openapi.problems(create, **bad, in_process=True))


def test_response_without_content_has_no_body() -> None:
    declared = {"responses": {"204": {"headers": {"Cache-Control": COMPONENTS["headers"]["Cache-Control"]}}}}
    delete = Operation("deletePet", "DELETE", "/pets/{petId}", declared)

    assert openapi.problems(delete, 204, {"Cache-Control": "no-store"}, "", in_process=True) == []
    assert openapi.problems(delete, 204, {"Cache-Control": "no-store"}, "null") == ["a body where none is declared"]
    assert openapi.problems(delete, 204, {}, "") == ["Cache-Control is missing"]
