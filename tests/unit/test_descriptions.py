"""Code, openapi.yaml, client and worked example describe the same things alike.

`make quick` runs these tests, so that it names each place that a change has left undone.
"""

import re
import subprocess
from typing import get_args
from unittest import mock

import pytest
from animal_store import models, paging
from animal_store.constraints import PET_STATUSES
from animal_store.request import InvalidRequest, Request
from animal_store_client import Client
from animal_store_client.pet import PetStatus
from pydantic import TypeAdapter, ValidationError

from tests.support import openapi
from tools import ROOT

NEW_PET = openapi.SCHEMAS["NewPet"]
NAME = NEW_PET["properties"]["name"]
NAME_TEXT = " ".join(NAME["description"].split())


def test_a_new_animal_has_the_bounds_of_the_document() -> None:
    model = TypeAdapter(models.NewPet).json_schema()
    bounds = ("minLength", "maxLength", "minimum", "maximum", "enum")

    assert model["required"] == NEW_PET["required"]
    for name, schema in NEW_PET["properties"].items():
        expected = {key: schema[key] for key in bounds if key in schema}
        actual = model["properties"][name]
        assert {key: actual[key] for key in bounds if key in actual} == expected


def test_a_page_has_the_bounds_and_the_default_of_the_document() -> None:
    limit = openapi.LIMIT

    assert page_size(None) == limit["default"]
    assert page_size(limit["minimum"]) == limit["minimum"]
    assert page_size(limit["maximum"]) == limit["maximum"]
    for outside in (limit["minimum"] - 1, limit["maximum"] + 1):
        with pytest.raises(InvalidRequest):
            page_size(outside)


def test_the_statuses_of_layer_document_and_client_are_the_same() -> None:
    assert list(PET_STATUSES) == openapi.STATUSES == list(get_args(PetStatus))


def test_the_text_names_the_characters_that_a_name_may_not_consist_of() -> None:
    validate = TypeAdapter(models.Name).validate_python
    refused = set()
    for code in set(range(0x10000)) - set(range(0xD800, 0xE000)):
        try:
            validate(chr(code))
        except ValidationError:
            refused.add(code)

    named = set()
    for first, last in re.findall(
        r"U\+([0-9A-F]{4})(?: to U\+([0-9A-F]{4}))?", NAME_TEXT
    ):
        named |= set(range(int(first, 16), int(last or first, 16) + 1))
    assert named == refused


def test_document_and_client_describe_a_name_by_its_bounds() -> None:
    bounds = f"{NAME['minLength']} to {NAME['maxLength']} characters"
    sentence = f"{bounds}, at least one of them not white space."

    assert sentence in NAME_TEXT
    assert f"name: {sentence}" in arguments(Client.create)


def test_client_describes_the_size_of_a_page_by_its_bounds() -> None:
    limit = openapi.LIMIT

    bounds = f"{limit['minimum']} to {limit['maximum']}."
    assert f"page_size: At most this many animals in a page, {bounds}" in arguments(
        Client.pages
    )


def test_the_worked_example_applies() -> None:
    patch = "docs/examples/color.patch"
    git = subprocess.run(
        ["git", "apply", "--check", "-C1", patch],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (git.stderr, git.returncode) == ("", 0)


def page_size(limit: int | None) -> int:
    """Return how many animals the catalogue is asked for at this `limit`."""
    catalogue = mock.Mock(partition="pet")
    catalogue.page.return_value = [], False
    query = {} if limit is None else {"limit": [str(limit)]}
    paging.page(Request({"multiValueQueryStringParameters": query}), catalogue)
    size: int = catalogue.page.call_args.args[0]
    return size


def arguments(function: object) -> str:
    """Return the arguments in a docstring, as one line."""
    return " ".join((function.__doc__ or "").partition("Args:")[2].split())
