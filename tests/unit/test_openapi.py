"""openapi.yaml agrees with the models, the list of errors, the functions' parameters and template.yaml."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from animal_store import errors, models, validators
from animal_store.pet_status import PET_STATUSES
from pydantic import TypeAdapter

from tests import openapi
from tests.unit.conftest import TEMPLATE, Context, Handler
from tests.unit.test_events import EVENTS, EXPECTED

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

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


def test_pet_has_the_members_of_the_model_and_narrower_bounds() -> None:
    # The model also reads what the table holds, so it leaves out the bounds that creation has made sure of.
    declared, model = openapi.schema("Pet"), schema_of(models.Pet)

    assert declared["properties"].keys() == model["properties"].keys()
    assert set(declared["required"]) == set(model["required"]) == {"id", "name", "categoryId"}
    for name, member in model["properties"].items():
        said = declared["properties"][name]
        assert said["type"] == member["type"]
        assert said.get("enum") == member.get("enum")
        assert said.get("minimum", 0) >= member.get("minimum", 0)
        assert said.get("maximum", 0) <= member.get("maximum", 0)


def test_pet_is_a_new_pet_with_an_id() -> None:
    pet, new = openapi.schema("Pet"), openapi.schema("NewPet")

    identifier = pet["properties"].pop("id")

    assert pet["properties"] == new["properties"]
    assert set(pet["required"]) == {"id", *new["required"]}
    assert rules(identifier) == {"type": "integer", "minimum": 1, "maximum": INT64_MAX}


def test_pets_is_an_array_of_pet() -> None:
    pets = openapi.document()["components"]["schemas"]["Pets"]

    assert pets["type"] == "array"
    assert pets["items"] == {"$ref": "#/components/schemas/Pet"}
    assert pets["maxItems"] == openapi.document()["components"]["parameters"]["Limit"]["schema"]["maximum"]


def test_error_has_the_members_of_the_model_and_no_others() -> None:
    declared, model = openapi.schema("Error"), schema_of(models.Error)

    assert {name: value["type"] for name, value in declared["properties"].items()} == {
        name: value["type"] for name, value in model["properties"].items()
    }
    assert set(declared["required"]) == set(model["required"]) == {"code", "message", "status"}
    assert openapi.document()["components"]["schemas"]["Error"]["additionalProperties"] is False


def test_status_values_are_those_of_the_model() -> None:
    assert tuple(openapi.document()["components"]["schemas"]["PetStatus"]["enum"]) == PET_STATUSES


def test_schema_names_are_those_of_the_interface() -> None:
    assert openapi.document()["components"]["schemas"].keys() == {"Pet", "NewPet", "PetStatus", "Pets", "Error"}


@pytest.mark.parametrize(
    ("body", "valid"),
    [
        ({"name": "Rex", "categoryId": 1}, True),
        ({"name": "Rex", "categoryId": 1, "status": "sold", "id": 7, "color": "red"}, True),
        ({"name": "x" * 256, "categoryId": INT64_MAX}, True),
        ({"name": " \u00e9 ", "categoryId": INT64_MIN}, True),
        ({"name": "x" * 257, "categoryId": 1}, False),
        ({"name": "", "categoryId": 1}, False),
        ({"name": " \t\n\u3000", "categoryId": 1}, False),
        ({"name": None, "categoryId": 1}, False),
        ({"name": "Rex", "categoryId": INT64_MAX + 1}, False),
        ({"name": "Rex", "categoryId": INT64_MIN - 1}, False),
        ({"name": "Rex", "categoryId": "1"}, False),
        ({"name": "Rex", "categoryId": True}, False),
        ({"name": "Rex", "categoryId": 1.5}, False),
        ({"name": "Rex", "categoryId": 1, "status": "lost"}, False),
        ({"name": "Rex", "categoryId": 1, "status": None}, False),
        ({"categoryId": 1}, False),
        ({"name": "Rex"}, False),
        ([], False),
    ],
)
def test_document_and_model_take_and_refuse_the_same_bodies(body: object, *, valid: bool) -> None:
    try:
        validators.NEW_PET.python(body)
    except ValueError:
        taken = False
    else:
        taken = True

    assert taken is valid
    assert openapi.is_valid(body, {"$ref": "#/components/schemas/NewPet"}) is valid


# -- parameters and headers --------------------------------------------------------------------------------------------


LIST_PARAMETERS = {
    parameter["name"]: openapi.follow(parameter["schema"])
    for parameter in map(openapi.follow, openapi.document()["paths"]["/pets"]["get"]["parameters"])
}


def test_parameters_of_a_list_are_limit_status_and_cursor() -> None:
    assert LIST_PARAMETERS.keys() == {"limit", "status", "cursor"}


@pytest.mark.parametrize(
    ("name", "value"),
    [("limit", value) for value in (-1, 0, 1, 2, 100, 101, 2**63)]
    + [("status", value) for value in (*PET_STATUSES, "lost", "", "Sold")],
)
def test_document_and_function_take_and_refuse_the_same_parameters(
    name: str, value: int | str, api_key: str, load_handler: Callable[[str], Handler], context: Context
) -> None:
    event = copy.deepcopy(EVENTS["list-200"])
    event["multiValueHeaders"]["Authorization"] = [f"Bearer {api_key}"]
    event["multiValueQueryStringParameters"] = {name: [str(value)]}

    answer = load_handler("list_pets")(event, context)

    assert answer["statusCode"] == (200 if openapi.is_valid(value, LIST_PARAMETERS[name]) else 400)


def test_default_of_limit_is_the_declared_one(
    tables: "DynamoDBClient", api_key: str, load_handler: Callable[[str], Handler], context: Context
) -> None:
    default = LIST_PARAMETERS["limit"]["default"]
    for number in range(1, default + 2):
        item = {"pk": {"S": "pet"}, "id": {"N": str(number)}, "name": {"S": "Rex"}, "categoryId": {"N": "1"}}
        tables.put_item(TableName=TEMPLATE.tables["AnimalsTable"].name, Item=item)
    event = copy.deepcopy(EVENTS["list-200"])
    event["multiValueHeaders"]["Authorization"] = [f"Bearer {api_key}"]

    answer = load_handler("list_pets")(event, context)

    assert len(json.loads(answer["body"])) == default


def test_limit_is_1_to_100_and_20_when_absent() -> None:
    limit = openapi.document()["components"]["parameters"]["Limit"]["schema"]

    assert rules(limit) == {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}


@pytest.mark.parametrize(
    ("key", "valid"),
    [("a", True), ("x" * 255, True), ('"quoted"', True), ("", False), ("x" * 256, False), ("two words", False)],
)
def test_idempotency_key_is_declared_as_1_to_255_visible_characters(key: str, *, valid: bool) -> None:
    assert openapi.is_valid(key, openapi.document()["components"]["parameters"]["IdempotencyKey"]["schema"]) is valid


# -- operations --------------------------------------------------------------------------------------------------------


def test_operations_are_the_routes_of_the_template() -> None:
    declared = {(method, f"/v1{path}") for method, path, _ in openapi.operations()}

    assert declared == {(route.method, route.resource) for route in TEMPLATE.routes}


def test_operation_ids_are_those_of_the_interface() -> None:
    assert {(method, path): operation["operationId"] for method, path, operation in openapi.operations()} == {
        ("GET", "/pets"): "listPets",
        ("POST", "/pets"): "createPet",
        ("GET", "/pets/{petId}"): "getPet",
    }


def test_only_get_pet_is_deprecated_and_tells_its_end() -> None:
    deprecated = [operation for _, _, operation in openapi.operations() if operation.get("deprecated")]

    assert [operation["operationId"] for operation in deprecated] == ["getPet"]
    assert "5 December 2030" in deprecated[0]["description"]


def test_every_operation_asks_for_the_api_key() -> None:
    document = openapi.document()

    assert document["security"] == [{"bearerAuth": []}]
    assert not [operation for _, _, operation in openapi.operations() if "security" in operation]
    scheme = document["components"]["securitySchemes"]["bearerAuth"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")


def test_both_servers_end_in_the_version() -> None:
    servers = openapi.document()["servers"]

    assert [server["description"] for server in servers] == ["Production", "Staging"]
    for server in servers:
        assert server["url"].endswith(f"/{server['description'].lower()}/v1")
        assert set(re.findall(r"{(\w+)}", server["url"])) == server["variables"].keys()


ON_EVERY_OPERATION = {"401", "429", "500", "502", "503", "504"}


@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [
        ("GET", "/pets", {"200", "400"}),
        ("POST", "/pets", {"201", "400", "413", "415", "422"}),
        ("GET", "/pets/{petId}", {"200", "404"}),
    ],
)
def test_each_status_that_an_operation_answers_is_declared(method: str, path: str, statuses: set[str]) -> None:
    responses = openapi.document()["paths"][path][method.lower()]["responses"]

    assert responses.keys() == statuses | ON_EVERY_OPERATION


# -- errors ------------------------------------------------------------------------------------------------------------


# API Gateway answers 502 for a function that crashed: to clients the same as a failure that the function reports.
STATUSES_OF_CODE = {code: {status} for code, status in errors.STATUS_OF_CODE.items()} | {"internal_error": {500, 502}}


def test_codes_are_the_closed_list_of_the_layer() -> None:
    code = openapi.schema("Error")["properties"]["code"]

    assert set(code["enum"]) == errors.STATUS_OF_CODE.keys()
    table = re.findall(r"^\| `(\w+)` \| ([\d, ]+) \|", code["description"], re.MULTILINE)
    assert {name: {int(status) for status in statuses.split(",")} for name, statuses in table} == STATUSES_OF_CODE


ERROR_RESPONSES = [
    (method, path, status)
    for method, path, operation in openapi.operations()
    for status in operation["responses"]
    if int(status) >= 400
]


@pytest.mark.parametrize(("method", "path", "status"), ERROR_RESPONSES)
def test_each_error_is_an_error_object_with_an_example_of_its_status(method: str, path: str, status: str) -> None:
    media_type = openapi.declared(method, path, int(status))["content"]["application/json"]

    assert media_type["schema"] == {"$ref": "#/components/schemas/Error"}
    examples = [openapi.follow(example)["value"] for example in media_type["examples"].values()]
    assert examples
    for example in examples:
        assert example["status"] == int(status)
        assert example["status"] in STATUSES_OF_CODE[example["code"]]


def answered_errors() -> Iterator[dict[str, Any]]:
    """Yield the Error objects that the events, the layer's classes and the template's gateway responses make."""
    yield from (expected.body for expected in EXPECTED.values() if isinstance(expected.body, dict))
    classes: list[type[errors.ServiceError]] = [errors.ServiceError, *errors.ServiceError.__subclasses__()]
    for kind in classes:
        if kind is not errors.InvalidRequest:
            error = kind()
            yield {"code": error.code, "message": str(error), "status": error.status}
    for response in TEMPLATE.gateway_responses.values():
        yield json.loads(response.bodies["application/json"])


@pytest.mark.parametrize(("method", "path", "status"), ERROR_RESPONSES)
def test_each_error_example_is_an_answer_that_the_service_gives(method: str, path: str, status: str) -> None:
    examples = openapi.declared(method, path, int(status))["content"]["application/json"]["examples"].values()

    for example in examples:
        assert openapi.follow(example)["value"] in list(answered_errors())


@pytest.mark.parametrize("kind", TEMPLATE.gateway_responses)
def test_each_error_that_the_gateway_makes_is_an_error_object(kind: str) -> None:
    response = TEMPLATE.gateway_responses[kind]

    body = json.loads(response.bodies["application/json"])

    assert openapi.errors(body, {"$ref": "#/components/schemas/Error"}) == []
    assert body["status"] in STATUSES_OF_CODE[body["code"]]
    if response.status is not None:
        assert body["status"] == response.status


# -- headers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path", "status"), ERROR_RESPONSES)
def test_errors_declare_the_headers_that_go_with_them(method: str, path: str, status: str) -> None:
    headers = openapi.declared(method, path, int(status)).get("headers", {})

    assert {"Cache-Control", "X-Content-Type-Options"} <= headers.keys()
    assert ("WWW-Authenticate" in headers) is (status == "401")
    assert ("Retry-After" in headers) is (status in {"429", "503", "504"})
    by_the_function = status not in {"413", "429", "502", "504"}
    assert ({"Deprecation", "Sunset", "Link"} <= headers.keys()) is (path == "/pets/{petId}" and by_the_function)


# -- examples ----------------------------------------------------------------------------------------------------------


def media_types() -> Iterator[tuple[str, dict[str, Any]]]:
    for method, path, operation in openapi.operations():
        if "requestBody" in operation:
            yield f"{method} {path} request", operation["requestBody"]["content"]["application/json"]
        for status, response in operation["responses"].items():
            yield f"{method} {path} {status}", openapi.follow(response)["content"]["application/json"]


@pytest.mark.parametrize("media_type", [pytest.param(value, id=name) for name, value in media_types()])
def test_body_examples_are_valid(media_type: dict[str, Any]) -> None:
    assert media_type["examples"]
    for example in media_type["examples"].values():
        assert openapi.errors(openapi.follow(example)["value"], media_type["schema"]) == []


def described_values() -> Iterator[Any]:
    components = openapi.document()["components"]
    for kind in ("parameters", "headers"):
        for name, value in components[kind].items():
            if "example" in value:
                yield pytest.param(value["example"], value["schema"], id=name)
    for name, schema in components["schemas"].items():
        members = openapi.schema(name)["properties"] if "properties" in schema or "allOf" in schema else {}
        for key, member in {**members, "": schema}.items():
            for example in member.get("examples", []):
                yield pytest.param(example, member, id=f"{name}.{key}")


@pytest.mark.parametrize(("example", "schema"), [*described_values()])
def test_other_examples_are_valid(example: object, schema: dict[str, Any]) -> None:
    assert openapi.errors(example, schema) == []
