"""createPet: members and their ranges, and that what is kept is what was sent."""

import json
from itertools import product

import pytest

from tests.contract.client import (
    JSON,
    Client,
    Headers,
    Pet,
    assert_error,
    eventually,
)
from tests.contract.seeded_pets import SeededPets
from tests.support.openapi import STATUSES

PAW = "\N{PAW PRINTS}"
REX = b'{"name": "Rex", "categoryId": 1}'

NAMES = [
    "x",
    "x" * 256,
    PAW * 256,
    "\0",
    "\N{ZERO WIDTH SPACE}",
    '{"S": "x"}',
    "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{MICROSCOPE}\N{RIGHT-TO-LEFT OVERRIDE}חתול",
    # None of these becomes another form of itself: combining, precomposed, compatibility.
    "e\N{COMBINING ACUTE ACCENT} \N{LATIN SMALL LETTER E WITH ACUTE} \N{KELVIN SIGN}",
    "\"'`\\/\b\f\\u0041\\n%41&amp;<script>alert(1)</script>{{7*7}}${7*7}%s%n'; DROP TABLE x; --",
    "\x01\x08\t\n\x0b\x1b\x1fx\x7f\x80\x9f",
    " \t\r\n x \N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}y\N{NO-BREAK SPACE}\ufeff",
    "\uffff\ufdd0\U0010ffff\ue000\U000f0000",  # noncharacters, and those of private use
]

NUMBERS = [0, -1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]

WHITE_SPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0"
    "\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
)
# Of other types, test_document.py sends enough.
NOT_NAMES = [*WHITE_SPACE, WHITE_SPACE, "x" * 257, PAW * 257, "", 1]
# Python writes the last two with a fraction and with an exponent, whatever their value.
NOT_INTEGERS = ["1", True, 2**63, -(2**63) - 1, 1.0, 1e22]
NOT_STATUSES = ["", STATUSES[0].upper(), f"{STATUSES[0]} "]

KEPT = [
    *({"name": name} for name in NAMES),
    *({"categoryId": number} for number in NUMBERS),
]


@pytest.mark.parametrize("members", KEPT, ids=str)
def test_kept_exactly(client: Client, seeded_pets: SeededPets, members: Pet) -> None:
    """What is sent is answered and listed: not trimmed, not normalised, not rounded."""
    pet = client.create(**members)
    assert pet in seeded_pets.walk()


@pytest.mark.parametrize("members", [{}, *({"status": name} for name in STATUSES)])
def test_status(client: Client, seeded_pets: SeededPets, members: Pet) -> None:
    """An animal is in the list of its own status and in no other."""
    pet = client.create(**members)
    own = list(members.values())
    assert eventually(
        lambda: [name for name in STATUSES if pet in seeded_pets.walk(name)] == own
    )


@pytest.mark.parametrize(
    ("member", "value"),
    [
        *product(["name"], NOT_NAMES),
        *product(["categoryId"], NOT_INTEGERS),
        *product(["status"], NOT_STATUSES),
    ],
)
def test_value_refused(client: Client, member: str, value: object) -> None:
    new = client.new(**{member: value})
    assert_error(client.post(new), "invalid_request", naming=member + ": ")


def test_unknown_members_ignored(client: Client) -> None:
    """Members that the interface does not have are ignored, an id too."""
    new = client.new()
    extra = {"id": -1, "pk": "counter", "token": "x", "Status": "x", "": {"a": [None]}}
    pet = client.post({**new, **extra}).json()
    assert pet == {"id": pet["id"], **new}
    assert client.request("GET", f"/pets/{pet['id']}").json() == pet


def test_refused_adds_nothing(client: Client, seeded_pets: SeededPets) -> None:
    """A creation that is refused for its parameter alone adds no animal: it has none."""
    new = client.new()
    content = json.dumps(new).encode()
    response = client.request("POST", "/pets?dryRun=1", [JSON], content)
    assert_error(response, "invalid_request", naming="dryRun")
    assert new["name"] not in [pet["name"] for pet in seeded_pets.walk()]


@pytest.mark.parametrize(
    "headers",
    [
        [("cONTENT-tYPE", 'APPLICATION/json ; charset="utf-8"')],
        [("Content-Encoding", "identity")],
        [],
    ],
)
def test_media_type(client: Client, headers: Headers) -> None:
    """JSON is taken whatever the case and the parameters of its media type, or without one."""
    assert client.request("POST", "/pets", headers, REX).status_code == 201


@pytest.mark.parametrize(
    "media_type",
    [
        "*/*",
        "application/json-patch+json",
        "text/plain; application/json",
        "application/json, text/plain",
    ],
)
def test_media_type_refused(client: Client, media_type: str) -> None:
    """Any other media type is refused."""
    response = client.request("POST", "/pets", [("Content-Type", media_type)], REX)
    assert_error(response, "unsupported_media_type")
