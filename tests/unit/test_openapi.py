"""openapi.yaml agrees with models, errors and the functions' parameters.

That its examples are valid, and every operation asks for the API key, is Spectral's to say
(`make check`).
"""

import re
from typing import Any

import pytest
from animal_store import errors, models
from pydantic import TypeAdapter

from tests.support import openapi
from tools import ROOT

COMPONENTS = openapi.document()["components"]
PATTERNS = re.findall("pattern: '(.+)'", (ROOT / "openapi.yaml").read_text("utf-8"))

# What JSON Schema says about a value; titles, descriptions, examples and formats are for readers.
RULES = {"type", "enum", "minimum", "maximum", "minLength", "maxLength", "default"}


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

    def rules(schema: dict[str, Any], name: str) -> dict[str, Any]:
        member = schema["properties"].get(name, {})
        return {rule: value for rule, value in member.items() if rule in compared}

    why = f"{model.__name__} differs between openapi.yaml and models.py."
    assert declared["properties"].keys() == own["properties"].keys(), why
    assert set(declared["required"]) == set(own["required"]), why
    for name in declared["properties"]:
        assert rules(declared, name) == rules(own, name), why


def test_ids_and_pages_have_their_bounds() -> None:
    pet_id = openapi.schema("Pet")["properties"]["id"]
    largest = openapi.LIMIT["maximum"]

    assert (pet_id["minimum"], pet_id["maximum"]) == (1, 2**63 - 1)
    # The contract suite compares the function's bounds with these.
    assert COMPONENTS["schemas"]["Pets"]["maxItems"] == largest
    row = f"| animals per page | {largest} | {largest} |"
    assert row in openapi.document()["info"]["description"]


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
