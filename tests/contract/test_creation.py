"""createPet adds an animal with valid members (schema NewPet and "Numbers" in openapi.yaml)."""

import pytest
from httpx2 import Client
from jsonschema import Draft202012Validator

from tests.contract.client import Pet, assert_error, create, new_pet
from tests.contract.openapi import SCHEMAS

SCHEMA = Draft202012Validator(SCHEMAS["NewPet"])
PAW = "\N{PAW PRINTS}"

VALID_MEMBERS = {
    "a name of 256 characters": {"name": PAW * 256},
    "a name with white space around it": {"name": " \t\r\n x \N{LINE SEPARATOR}\ufeff"},
    "a name of control characters": {"name": "\0\x01\x08\x1b\x1f\x7f\x80\x9f"},
    "a name with the syntax of other languages": {
        "name": "\"'`\\/\\u0041\\n%41&amp;<b>{{7*7}}${7*7}%s%n'; --"
    },
    # Unicode normalization would change these characters.
    "a name that is not normalized": {
        "name": "e\N{COMBINING ACUTE ACCENT} é \N{KELVIN SIGN}"
    },
    "a name of unprintable characters": {
        "name": "\u202e\u200d\uffff\ufdd0\U0010ffff\ue000"
    },
    "categoryId 0": {"categoryId": 0},
    "categoryId 2^53 + 1": {"categoryId": 2**53 + 1},
    "categoryId 2^63 - 1": {"categoryId": 2**63 - 1},
    "categoryId -2^63": {"categoryId": -(2**63)},
}
INVALID_MEMBERS = {
    "an empty name": ("name", ""),
    "a name of white space": ("name", "\t\x1f \x85\xa0\u2028\u3000"),
    "a name of 257 characters": ("name", PAW * 257),
    "name 1": ("name", 1),
    "categoryId 2^63": ("categoryId", 2**63),
    "categoryId -2^63 - 1": ("categoryId", -(2**63) - 1),
    "categoryId as a string": ("categoryId", "1"),
    "categoryId 1.5": ("categoryId", 1.5),
    "categoryId true": ("categoryId", True),
    "an empty status": ("status", ""),
    "status AVAILABLE": ("status", "AVAILABLE"),
    "status null": ("status", None),
}


@pytest.mark.parametrize("members", VALID_MEMBERS.values(), ids=VALID_MEMBERS)
def test_animal_is_returned_as_it_was_sent(client: Client, members: Pet) -> None:
    """No value is trimmed, normalized or rounded."""
    pet = create(client, new_pet(**members))
    assert client.get(f"/pets/{pet['id']}").json() == pet


@pytest.mark.parametrize(
    ("member", "value"), INVALID_MEMBERS.values(), ids=INVALID_MEMBERS
)
def test_invalid_value_gets_400(client: Client, member: str, value: object) -> None:
    pet = new_pet(**{member: value})
    assert not SCHEMA.is_valid(pet), f"openapi.yaml allows {member} {value!r}"
    assert_error(client.post("/pets", json=pet), 400, naming=f"{member}: ")


def test_unknown_members_are_ignored(client: Client) -> None:
    """`id` is one of them, so a client cannot choose the id."""
    unknown = {
        "id": -1,
        "pk": "counter",
        "token": "x",
        "Status": "x",
        "": {"a": [None]},
    }
    sent = new_pet()
    pet = client.post("/pets", json=sent | unknown).json()
    assert pet == {"id": pet["id"], **sent}
    assert client.get(f"/pets/{pet['id']}").json() == pet


def test_creation_with_a_query_parameter_gets_400(client: Client) -> None:
    response = client.post("/pets?dryRun=1", json=new_pet())
    assert_error(response, 400, naming="dryRun")
