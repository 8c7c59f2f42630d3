"""createPet: members and their ranges, and that what is kept is what was sent."""

from itertools import product

import pytest
from httpx2 import Client
from jsonschema import Draft202012Validator

from tests.contract.client import assert_error, create, new
from tests.contract.seeded_pets import SeededPets
from tests.support.openapi import SCHEMAS, STATUSES

PAW = "\N{PAW PRINTS}"

NAMES = [
    "x",
    "x" * 256,
    PAW * 256,
    "\0",
    "\N{ZERO WIDTH SPACE}",
    "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{MICROSCOPE}\N{RIGHT-TO-LEFT OVERRIDE}חתול",
    # None of these becomes another form of itself: combining, precomposed, compatibility.
    "e\N{COMBINING ACUTE ACCENT} \N{LATIN SMALL LETTER E WITH ACUTE} \N{KELVIN SIGN}",
    "\"'`\\/\b\f\\u0041\\n%41&amp;<script>alert(1)</script>{{7*7}}${7*7}%s%n'; DROP TABLE x; --",
    "\x01\x08\t\n\x0b\x1b\x1fx\x7f\x80\x9f",
    " \t\r\n x \N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}y\N{NO-BREAK SPACE}\ufeff",
    "\uffff\ufdd0\U0010ffff\ue000\U000f0000",  # noncharacters, and those of private use
]

NUMBERS = [0, 2**53 + 1, 2**63 - 1, -(2**63)]

WHITE_SPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0"
    "\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
)
# Of other types, test_document.py sends enough.
NOT_NAMES = [*WHITE_SPACE, WHITE_SPACE, "x" * 257, PAW * 257, "", 1]
# Python writes the last two with a fraction and with an exponent, whatever their value.
NOT_INTEGERS = ["1", True, 2**63, -(2**63) - 1, 1.0, 1e22]
NOT_STATUSES = ["", STATUSES[0].upper()]
# JSON Schema has no such white space, and takes the number for an integer.
ONLY_WE_REFUSE = ["\ufeff", WHITE_SPACE, 1.0]
DOCUMENTED = Draft202012Validator(SCHEMAS["NewPet"])

KEPT = [*product(["name"], NAMES), *product(["categoryId"], NUMBERS)]
for name, declared in SCHEMAS["NewPet"]["properties"].items():
    KEPT += product([name], declared["examples"])
REFUSED = [
    *product(["name"], NOT_NAMES),
    *product(["categoryId"], NOT_INTEGERS),
    *product(["status"], NOT_STATUSES),
]


@pytest.mark.parametrize(("member", "value"), KEPT)
def test_values_are_kept_exactly(
    client: Client, seeded_pets: SeededPets, member: str, value: object
) -> None:
    """No value is trimmed, normalised or rounded."""
    assert create(client, **{member: value}) in seeded_pets.listed()


@pytest.mark.parametrize(("member", "value"), REFUSED)
def test_invalid_value_is_refused(client: Client, member: str, value: object) -> None:
    sent = new(**{member: value})
    if value not in ONLY_WE_REFUSE:
        assert not DOCUMENTED.is_valid(sent), f"openapi.yaml allows {member} {value!r}"
    response = client.post("/pets", json=sent)
    assert_error(response, "invalid_request", naming=member + ": ")


def test_unknown_members_are_ignored(client: Client) -> None:
    """An id is such a member."""
    extra = {"id": -1, "pk": "counter", "token": "x", "Status": "x", "": {"a": [None]}}
    sent = new()
    pet = client.post("/pets", json=sent | extra).json()
    assert pet == {"id": pet["id"], **sent}
    assert client.get(f"/pets/{pet['id']}").json() == pet


def test_refused_creation_adds_nothing(client: Client, seeded_pets: SeededPets) -> None:
    """All that is wrong with it is a query parameter: the operation has none."""
    sent = new()
    response = client.post("/pets?dryRun=1", json=sent)
    assert_error(response, "invalid_request", naming="dryRun")
    assert sent["name"] not in [pet["name"] for pet in seeded_pets.listed()]
