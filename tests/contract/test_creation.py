"""createPet: the members of an animal (schema NewPet), and "Numbers" in openapi.yaml."""

import pytest
from httpx2 import Client
from jsonschema import Draft202012Validator

from tests.contract.client import Pet, assert_error, create, new
from tests.support.openapi import SCHEMAS

DOCUMENTED = Draft202012Validator(SCHEMAS["NewPet"])
PAW = "\N{PAW PRINTS}"

KEPT = {
    "the examples": {
        name: declared["examples"][0]
        for name, declared in SCHEMAS["NewPet"]["properties"].items()
    },
    "a name of 256 characters": {"name": PAW * 256},
    "a name with white space around it": {"name": " \t\r\n x \N{LINE SEPARATOR}\ufeff"},
    "a name of control characters": {"name": "\0\x01\x08\x1b\x1f\x7f\x80\x9f"},
    "a name with escapes": {
        "name": "\"'`\\/\\u0041\\n%41&amp;<b>{{7*7}}${7*7}%s%n'; --"
    },
    # None of these becomes another form of itself: combining, precomposed, compatibility.
    "a name to normalise": {"name": "e\N{COMBINING ACUTE ACCENT} é \N{KELVIN SIGN}"},
    "a name of noncharacters": {"name": "\u202e\u200d\uffff\ufdd0\U0010ffff\ue000"},
    "categoryId 0": {"categoryId": 0},
    "categoryId 2^53 + 1": {"categoryId": 2**53 + 1},
    "categoryId 2^63 - 1": {"categoryId": 2**63 - 1},
    "categoryId -2^63": {"categoryId": -(2**63)},
}
REFUSED = {
    "an empty name": ("name", ""),
    "a name of white space": ("name", "\t\x1f \x85\xa0\u2028\u3000"),
    "a name of 257 characters": ("name", PAW * 257),
    "name 1": ("name", 1),
    "categoryId 2^63": ("categoryId", 2**63),
    "categoryId -2^63 - 1": ("categoryId", -(2**63) - 1),
    "categoryId as a text": ("categoryId", "1"),
    "categoryId 1.5": ("categoryId", 1.5),
    "categoryId true": ("categoryId", True),
    "an empty status": ("status", ""),
    "status AVAILABLE": ("status", "AVAILABLE"),
    "status null": ("status", None),
}


@pytest.mark.parametrize("members", KEPT.values(), ids=KEPT)
def test_animal_is_kept_exactly(client: Client, members: Pet) -> None:
    """No value is trimmed, normalised or rounded."""
    pet = create(client, new(**members))
    assert client.get(f"/pets/{pet['id']}").json() == pet


@pytest.mark.parametrize(("member", "value"), REFUSED.values(), ids=REFUSED)
def test_invalid_value_is_refused_with_400(
    client: Client, member: str, value: object
) -> None:
    pet = new(**{member: value})
    assert not DOCUMENTED.is_valid(pet), f"openapi.yaml allows {member} {value!r}"
    assert_error(client.post("/pets", json=pet), 400, naming=f"{member}: ")


@pytest.mark.parametrize("member", ["name", "categoryId"])
def test_creation_without_a_required_member_is_refused_with_400(
    client: Client, member: str
) -> None:
    pet = new()
    del pet[member]
    assert_error(client.post("/pets", json=pet), 400, naming=f"{member}: ")


def test_unknown_members_are_ignored(client: Client) -> None:
    """An id is such a member."""
    extra = {"id": -1, "pk": "counter", "token": "x", "Status": "x", "": {"a": [None]}}
    sent = new()
    pet = client.post("/pets", json=sent | extra).json()
    assert pet == {"id": pet["id"], **sent}
    assert client.get(f"/pets/{pet['id']}").json() == pet


def test_query_parameter_is_refused_with_400(client: Client) -> None:
    response = client.post("/pets?dryRun=1", json=new())
    assert_error(response, 400, naming="dryRun")


def test_refused_creation_adds_no_animal(client: Client) -> None:
    first = create(client, new())["id"]
    response = client.post("/pets", json=new(categoryId="1"))
    last = create(client, new())["id"]

    assert_error(response, 400)
    for pet_id in range(first + 1, last):
        assert_error(client.get(f"/pets/{pet_id}"), 404)
