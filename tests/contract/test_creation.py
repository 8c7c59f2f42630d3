"""createPet: members and their ranges, and that what is kept is what was sent (section 4.2)."""

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
    "null",
    "123",
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
NOT_NAMES = [
    *WHITE_SPACE,
    WHITE_SPACE,
    " " * 256,
    "",
    "x" * 257,
    PAW * 257,
    None,
    1,
    True,
    ["Rex"],
    {"S": "Rex"},
]
# As they are written in JSON. A fraction or an exponent is not an integer, whatever its value.
NOT_INTEGERS = [
    b"null",
    b'"1"',
    b'""',
    b"true",
    b"false",
    b"[1]",
    b'{"N": "1"}',
    b"9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551617",
    b"1.5",
    b"1.0",
    b"-1.0",
    b"1e2",
    b"1E2",
    b"1e-1",
    b"9223372036854775807.0",
    b"1e400",
]
NOT_STATUSES = [
    "unknown",
    None,
    "",
    STATUSES[0].upper(),
    f"{STATUSES[0]} ",
    0,
    True,
    [STATUSES[0]],
    {"S": STATUSES[0]},
]


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


def test_name_escaped(client: Client) -> None:
    """JSON has two spellings of a character; both are that character."""
    response = client.post(REX.replace(b"Rex", rb"\ud83d\udc3e\u00e9"))
    assert response.json()["name"] == f"{PAW}é"


def test_every_creation_is_another(client: Client) -> None:
    """Without an Idempotency-Key, the same body adds another animal, whose id is greater."""
    ids = [client.post(REX).json()["id"] for _ in range(3)]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize(
    ("member", "value"),
    [*product(["name"], NOT_NAMES), *product(["status"], NOT_STATUSES)],
)
def test_value_refused(client: Client, member: str, value: object) -> None:
    new = client.new(**{member: value})
    assert_error(client.post(new), "invalid_request", naming=member + ": ")


@pytest.mark.parametrize("number", NOT_INTEGERS)
def test_category_refused(client: Client, number: bytes) -> None:
    response = client.post(REX.replace(b"1", number))
    assert_error(response, "invalid_request", naming="categoryId: ")


def test_unknown_members_ignored(client: Client, seeded_pets: SeededPets) -> None:
    """Members that the interface does not have are ignored, an id too."""
    new = client.new()
    extra = {"id": -1, "pk": "counter", "token": "x", "Status": "x", "": {"a": [None]}}
    pet = client.post({**new, **extra}).json()
    assert pet == {"id": pet["id"], **new}
    assert pet in seeded_pets.walk()


def test_refused_adds_nothing(client: Client, seeded_pets: SeededPets) -> None:
    """A refused creation adds no animal, also where only a parameter is unknown: it has none."""
    new = client.new()
    assert_error(client.post({**new, "status": "x"}), "invalid_request")
    content = json.dumps(new).encode()
    response = client.request("POST", "/pets?dryRun=1", [JSON], content)
    assert_error(response, "invalid_request", naming="dryRun")
    assert new["name"] not in [pet["name"] for pet in seeded_pets.walk()]


@pytest.mark.parametrize(
    "headers",
    [
        [("cONTENT-tYPE", "application/json;charset=UTF-8")],
        [("Content-Type", 'application/json ; charset="utf-8"')],
        [("content-type", "APPLICATION/JSON")],
        [],
    ],
)
def test_media_type(client: Client, headers: Headers) -> None:
    """JSON is taken whatever the case and the parameters of its media type, or without one."""
    assert client.request("POST", "/pets", headers, REX).status_code == 201


@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "json",
        "*/*",
        "application/jsonp",
        "application/json-patch+json",
        "application/vnd.api+json",
        "x application/json",
        "text/plain; application/json",
        "application/json, text/plain",
    ],
)
def test_media_type_refused(client: Client, media_type: str) -> None:
    """Any other media type is refused."""
    response = client.request("POST", "/pets", [("Content-Type", media_type)], REX)
    assert_error(response, "unsupported_media_type")
