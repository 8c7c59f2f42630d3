"""Compares the descriptions of an animal in code, openapi.yaml and client.

`make quick` runs these tests, so that it names each place that a change has left undone.
"""

import re
from typing import Any, get_args

from animal_store import models
from animal_store.constraints import PET_STATUSES
from animal_store.validators import Validator
from animal_store_client import Client
from animal_store_client.pet import PetStatus
from pydantic import TypeAdapter, ValidationError

from tests.contract import openapi

NEW_PET = openapi.SCHEMAS["NewPet"]
NEW_PET_VALIDATOR = Validator[models.NewPet]("NewPet")
NAME = NEW_PET["properties"]["name"]
NAME_TEXT = " ".join(NAME["description"].split())
BOUND_KEYWORDS = {"minLength", "maxLength", "minimum", "maximum", "enum"}


def bounds(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the bounds of each member of a JSON schema."""
    members = {}
    for name, schema in properties.items():
        members[name] = {key: schema[key] for key in BOUND_KEYWORDS & schema.keys()}
    return members


def arguments(function: object) -> str:
    """Return the arguments in a docstring, as one line."""
    return " ".join((function.__doc__ or "").partition("Args:")[2].split())


def test_model_and_openapi_have_the_same_members_and_bounds() -> None:
    model = TypeAdapter(models.NewPet).json_schema()

    assert model["required"] == NEW_PET["required"]
    assert bounds(model["properties"]) == bounds(NEW_PET["properties"])


def test_layer_and_openapi_and_client_have_the_same_pet_statuses() -> None:
    assert (
        list(PET_STATUSES)
        == openapi.SCHEMAS["PetStatus"]["enum"]
        == list(get_args(PetStatus))
    )


def test_each_character_that_is_no_name_is_listed() -> None:
    refused = set()
    for code in (*range(0xD800), 0xFEFF):
        try:
            NEW_PET_VALIDATOR.validate({"name": chr(code), "categoryId": 1})
        except ValidationError:
            refused.add(code)

    documented = set()
    for first, last in re.findall(
        r"U\+([0-9A-F]{4})(?: to U\+([0-9A-F]{4}))?", NAME_TEXT
    ):
        documented |= set(range(int(first, 16), int(last or first, 16) + 1))
    assert documented == refused


def test_openapi_and_client_state_the_limits_of_a_name() -> None:
    bounds = f"{NAME['minLength']} to {NAME['maxLength']} characters"
    sentence = f"{bounds}, at least one of them not white space."

    assert sentence in NAME_TEXT
    assert f"name: {sentence}" in arguments(Client.create)


def test_client_states_the_limits_of_page_size() -> None:
    bounds = f"{openapi.LIMIT['minimum']} to {openapi.LIMIT['maximum']}."

    sentence = f"page_size: The maximum number of animals in a page, {bounds}"
    assert sentence in arguments(Client.pages)
