"""Compares the descriptions of an animal in code, openapi.yaml and client.

`make quick` runs these tests to name places that you still have to change.
"""

import re
from typing import get_args

from animal_store import models
from animal_store.constraints import NOT_BLANK
from animal_store_client.pet import PetStatus
from pydantic import TypeAdapter

from tests.contract import openapi

NEW_PET = openapi.SCHEMAS["NewPet"]
NAME = NEW_PET["properties"]["name"]
NAME_TEXT = " ".join(NAME["description"].split())
BOUNDS = ("minLength", "maxLength", "minimum", "maximum", "enum")


def test_model_and_openapi_have_the_same_members_and_bounds() -> None:
    model = TypeAdapter(models.NewPet).json_schema()

    assert model["required"] == NEW_PET["required"]
    assert model["properties"].keys() == NEW_PET["properties"].keys()
    for name, schema in model["properties"].items():
        documented = NEW_PET["properties"][name]
        for bound in BOUNDS:
            assert schema.get(bound) == documented.get(bound)


def test_client_and_openapi_have_the_same_pet_statuses() -> None:
    assert list(get_args(PetStatus)) == openapi.SCHEMAS["PetStatus"]["enum"]


def test_characters_that_count_as_white_space_are_documented() -> None:
    codes = (*range(0xD800), 0xFEFF)
    refused = {code for code in codes if not re.fullmatch(NOT_BLANK, chr(code))}

    documented = set()
    for first, last in re.findall(
        r"U\+([0-9A-F]{4})(?: to U\+([0-9A-F]{4}))?", NAME_TEXT
    ):
        documented |= set(range(int(first, 16), int(last or first, 16) + 1))
    assert documented == refused


def test_description_of_a_name_states_its_length() -> None:
    assert (NAME["minLength"], NAME["maxLength"]) == (1, 256)
    assert "1 to 256 characters, at least one of them not white space" in NAME_TEXT
