"""openapi.yaml says what is so: models, errors, limits, hours, and the headers of each status.

That its examples are valid, and every operation asks for the API key, is Spectral's to say
(`make check`).
"""

import re
from typing import Any

import pytest
from animal_store import catalogue, errors, models
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from tests.support import handlers, openapi, stack
from tests.support.fault_injection import DENIED, THROTTLED, FaultyStore
from tests.support.handlers import EVENTS, SUCCESSES
from tools import ROOT

TEXT = (ROOT / "openapi.yaml").read_text("utf-8")
DESCRIPTION = openapi.document()["info"]["description"]
COMPONENTS = openapi.document()["components"]
PATTERNS = re.findall("pattern: '(.+)'", TEXT)

# What JSON Schema says about a value; titles, descriptions, examples and formats are for readers.
RULES = {"type", "enum", "minimum", "maximum", "minLength", "maxLength", "default"}


def rules(schema: dict[str, Any], compared: set[str]) -> dict[str, dict[str, Any]]:
    """Return what a schema says about each of its members."""
    found: dict[str, dict[str, Any]] = {}
    for name, member in schema["properties"].items():
        found[name] = {rule: member[rule] for rule in member.keys() & compared}
    return found


@pytest.mark.parametrize(
    ("model", "compared"),
    [
        (models.NewPet, RULES),
        # It reads what the table holds, whose bounds creation has made sure of.
        (models.Pet, {"type"}),
        (models.Error, {"type"}),
    ],
)
def test_schema_is_the_model_of_the_same_name(model: type, compared: set[str]) -> None:
    declared = openapi.schema(model.__name__)
    own = TypeAdapter(model).json_schema(by_alias=False)

    why = f"{model.__name__} differs between openapi.yaml and models.py."
    assert rules(declared, compared) == rules(own, compared), why
    assert set(declared["required"]) == set(own["required"]), why


def test_ids_and_pages_have_their_bounds() -> None:
    pet_id = openapi.schema("Pet")["properties"]["id"]
    largest = openapi.LIMIT["maximum"]

    assert (pet_id["minimum"], pet_id["maximum"]) == (1, 2**63 - 1)
    # The contract suite compares the function's bounds with these.
    assert COMPONENTS["schemas"]["Pets"]["maxItems"] == largest
    assert f"| animals per page | {largest} | {largest} |" in DESCRIPTION


@pytest.mark.parametrize(
    ("row", "parameter"),
    [
        ("per second for each operation, all clients together", "ThrottlingRate"),
        ("operation, all clients together (burst)", "ThrottlingBurst"),
        ("requests per minute with one API key", "RequestsPerKey"),
        ("requests per minute from one address", "RequestsPerAddress"),
    ],
)
def test_limits_are_those_of_the_stages(row: str, parameter: str) -> None:
    default = stack.load("template.yaml")["Parameters"][parameter].get("Default")
    production = int(stack.parameters("production").get(parameter, default))
    values = stack.parameters("staging")
    staging = f"{int(values.get(parameter, default)):,}"
    if parameter.startswith("RequestsPer") and "Waf" not in values:
        staging = "no limit"
    assert f"{row} | {production:,} | {staging} |" in DESCRIPTION


def test_idempotency_keys_are_kept_as_long_as_the_text_says() -> None:
    hours = re.findall(r"kept for\s+(\d+) hours", TEXT)
    assert hours == [str(catalogue._IDEMPOTENCY_SECONDS // 3600)] * 2


@pytest.mark.parametrize("key", ["k" * 255, '"' + "k" * 255 + '"'])
@pytest.mark.usefixtures("store")
def test_longest_idempotency_keys_are_documented_and_taken(key: str) -> None:
    schema = COMPONENTS["parameters"]["IdempotencyKey"]["schema"]
    Draft202012Validator(schema).validate(key)
    assert len(key) in (255, schema["maxLength"])
    created = handlers.send("create-201", headers={"Idempotency-Key": [key]})
    assert created.status == 201


@openapi.each_operation
def test_headers_of_each_status_are_those_that_come(
    operation: openapi.Operation, store: FaultyStore
) -> None:
    names = [
        name for name in EVENTS if handlers.operation_of(EVENTS[name]) == operation
    ]
    success = next(name for name in names if name in SUCCESSES)
    store.fail("GetItem", DENIED)
    responses = [handlers.send(success)]
    store.fail("GetItem", THROTTLED, THROTTLED, THROTTLED)
    # Twice: a creation with an Idempotency-Key is then repeated.
    responses += [handlers.send(name) for name in [success, *names, *names]]
    come: dict[int, set[str]] = {}
    for response in responses:
        come.setdefault(response.status, {"x-amzn-RequestId"}).update(response.headers)

    assert {500, 503} < come.keys()
    for status, headers in come.items():
        documented = {*operation.responses[status]["headers"]}
        if status == 401:  # API Gateway delivers one as the other
            documented.remove("X-Amzn-Remapped-WWW-Authenticate")
        assert headers - {"Content-Type"} == documented, status


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_have_only_tokens_that_every_language_knows(pattern: str) -> None:
    # One escape of a character once made every generated Ruby client fail to load
    # (JSON Schema, core, 6.4).
    tokens = pattern.replace(r"\s", "").replace(r"\S", "")

    assert tokens.isascii()
    assert tokens.isprintable()
    assert not re.search(r"\\|\(\?|\[:|&&|\+\+|\*\+", tokens)


def test_both_names_of_the_challenge_have_the_same_value() -> None:
    headers = COMPONENTS["headers"]
    remapped = headers["X-Amzn-Remapped-WWW-Authenticate"]

    assert remapped["schema"] == headers["WWW-Authenticate"]["schema"]


def test_codes_are_the_closed_list_of_the_layer() -> None:
    of_the_layer = {code: {status} for code, status in errors.STATUS_OF_CODE.items()}
    # API Gateway answers 502 for a function that crashed: to clients the same as a failure that
    # the function reports.
    of_the_layer["internal_error"] = {500, 502}

    assert openapi.statuses_of_codes() == of_the_layer
