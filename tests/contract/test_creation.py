"""createPet: members and their ranges, and that what is kept is what was sent (section 4.2)."""

import json

import pytest

from tests.contract.client import (
    JSON,
    Client,
    Headers,
    Pet,
    assert_error,
    eventually,
    short,
)
from tests.contract.seeded_pets import STATUSES, SeededPets

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
    "adopted",
    None,
    "",
    "AVAILABLE",
    "sold ",
    0,
    True,
    ["sold"],
    {"S": "sold"},
]


def create_and_look(client: Client, seeded_pets: SeededPets, new: Pet) -> Pet:
    """Create an animal, and assert that it is answered, read and listed as it was sent."""
    response = client.post(new)
    assert response.status_code == 201
    assert "Idempotency-Replayed" not in response.headers
    pet: Pet = response.json()
    assert pet == {"id": pet["id"], **new}
    assert client.get(pet["id"]).json() == pet
    assert pet in seeded_pets.walk()
    return pet


@pytest.mark.parametrize("status", [None, *STATUSES])
def test_status(client: Client, seeded_pets: SeededPets, status: str | None) -> None:
    """An animal is in the list of its own status and in no other."""
    pet = create_and_look(client, seeded_pets, client.new(status=status))
    for each in STATUSES:
        if each == status:
            assert eventually(lambda: pet in seeded_pets.walk(status))
        else:
            assert pet not in seeded_pets.walk(each)


@pytest.mark.parametrize("number", NUMBERS)
def test_category_kept_exactly(
    client: Client, seeded_pets: SeededPets, number: int
) -> None:
    """Every int64 comes back digit by digit, beyond 2^53 too."""
    create_and_look(client, seeded_pets, client.new(categoryId=number))


@pytest.mark.parametrize("name", NAMES, ids=short)
def test_name_kept_exactly(client: Client, seeded_pets: SeededPets, name: str) -> None:
    """A name comes back as it was sent: not trimmed, not normalised, not escaped twice."""
    create_and_look(client, seeded_pets, client.new(name=name))


@pytest.mark.parametrize("name", [rb"\ud83d\udc3e\u00e9", f"{PAW}é".encode()])
def test_name_escaped_or_not(client: Client, name: bytes) -> None:
    """JSON has two spellings of a character; both are that character."""
    assert client.post(REX.replace(b"Rex", name)).json()["name"] == f"{PAW}é"


def test_every_creation_is_another(client: Client) -> None:
    """Without an Idempotency-Key, the same body adds another animal, whose id is greater."""
    first, second, third = client.post(REX), client.post(REX), client.post(REX)
    assert first.json()["id"] < second.json()["id"] < third.json()["id"]


@pytest.mark.parametrize("name", NOT_NAMES, ids=short)
def test_name_refused(client: Client, name: object) -> None:
    body = {"name": name, "categoryId": 1}
    assert_error(client.post(body), "invalid_request", naming="name: ")


@pytest.mark.parametrize("number", NOT_INTEGERS)
def test_category_refused(client: Client, number: bytes) -> None:
    response = client.post(REX.replace(b"1", number))
    assert_error(response, "invalid_request", naming="categoryId: ")


@pytest.mark.parametrize("status", NOT_STATUSES)
def test_status_refused(client: Client, status: object) -> None:
    body = {"name": "Rex", "categoryId": 1, "status": status}
    assert_error(client.post(body), "invalid_request", naming="status: ")


@pytest.mark.parametrize(
    "extra",
    [
        {"id": -1},
        {"id": None, "token": "x", "pk": "counter", "value": 5, "createdBy": "x"},
        {"colour": {"deep": [1, {"er": None}]}, "": 0, "__proto__": {}, "Status": "x"},
    ],
    ids=short,
)
def test_unknown_members_ignored(client: Client, extra: Pet) -> None:
    """Members that the interface does not have are ignored, an id too."""
    new = client.new()
    pet = client.post({**new, **extra}).json()
    assert pet == {"id": pet["id"], **new}
    assert client.get(pet["id"]).json() == pet


def test_refused_adds_nothing(client: Client, seeded_pets: SeededPets) -> None:
    """A refused creation adds no animal, also where only a parameter is unknown: it has none."""
    new = client.new()
    assert_error(client.post({**new, "status": "x"}), "invalid_request")
    response = client.request(
        "POST", "/pets?dryRun=1", [JSON], json.dumps(new).encode()
    )
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


@pytest.mark.parametrize("body", [REX, b""])
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
def test_media_type_refused(client: Client, media_type: str, body: bytes) -> None:
    """Any other media type is refused, whatever the body is."""
    response = client.request("POST", "/pets", [("Content-Type", media_type)], body)
    assert_error(response, "unsupported_media_type")
