"""createPet: members, their ranges, and that what is stored is what was sent (sections 2 and 4.2 of the interface)."""

import json

import pytest

from tests.contract.client import JSON, Client, Pet, assert_error, eventually
from tests.contract.seeded_pets import STATUSES, SeededPets

PAW = "\N{PAW PRINTS}"
NUMBERS = [0, -1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1]

NAMES = [
    *["x", "x" * 256, PAW * 256, "\0", "\N{ZERO WIDTH SPACE}", "null", "123", '{"S": "x"}'],
    "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{MICROSCOPE}\N{VARIATION SELECTOR-16}\N{RIGHT-TO-LEFT OVERRIDE}חתול",
    # None of these becomes another form of itself: combining, precomposed, compatibility.
    "e\N{COMBINING ACUTE ACCENT} \N{LATIN SMALL LETTER E WITH ACUTE} \N{LATIN SMALL LIGATURE FI}\N{KELVIN SIGN}",
    "\"'`\\/\b\f\\u0041\\n%41&amp;<script>alert(1)</script>{{7*7}}${7*7}#{7*7}%s%n{0}'; DROP TABLE pets; --",
    "".join(map(chr, range(32))) + "x\x7f\x80\x9f",
    " \t\r\n x \N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}y\N{NO-BREAK SPACE}\ufeff",
    "\uffff\ufdd0\U0010ffff\ue000\U000f0000",  # noncharacters, and those of private use
]

WHITE_SPACE = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"

INVALID: dict[str, list[object]] = {
    "name": [
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
    ],
    "categoryId": [
        None,
        "1",
        "",
        True,
        False,
        1.5,
        1.0,
        [1],
        {"N": "1"},
        2**63,
        -(2**63) - 1,
        2**64 + 1,
    ],
    "status": ["adopted", None, "", "AVAILABLE", "sold ", 0, True, ["sold"], {"S": "sold"}],
}


def kept(client: Client, seeded_pets: SeededPets, new: Pet) -> Pet:
    """Create an animal; it is answered as it was sent, read and listed as it was answered."""
    response = client.post(new)
    pet: Pet = response.json()
    assert response.status_code == 201
    assert pet == new | {"id": pet["id"]}
    assert "Idempotency-Replayed" not in response.headers
    assert client.get(pet["id"]).json() == pet
    assert pet in seeded_pets.onwards()
    return pet


@pytest.mark.parametrize("status", [None, *STATUSES])
def test_status(client: Client, seeded_pets: SeededPets, status: str | None) -> None:
    """An animal is in the list of its own status and no other; one without a status has none in any response."""
    pet = kept(client, seeded_pets, client.new(status=status))
    assert eventually(lambda: status is None or pet in seeded_pets.onwards(status))
    for other in {*STATUSES} - {status}:
        assert pet["id"] not in [listed["id"] for listed in seeded_pets.onwards(other)]


@pytest.mark.parametrize("number", NUMBERS)
def test_category_kept_exactly(client: Client, seeded_pets: SeededPets, number: int) -> None:
    """Every int64 comes back digit by digit, beyond 2^53 too."""
    kept(client, seeded_pets, client.new(categoryId=number))


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[1:20])
def test_name_kept_exactly(client: Client, seeded_pets: SeededPets, name: str) -> None:
    """Every character of a name comes back as it was sent: not trimmed, not normalised, not escaped twice."""
    kept(client, seeded_pets, client.new(name=name))


def test_name_escaped_or_not(client: Client) -> None:
    """JSON has two spellings of a character; both are that character."""
    for name in (b'"\\ud83d\\udc3e\\u00e9"', f'"{PAW}é"'.encode()):
        assert client.post(b'{"categoryId": 1, "name": ' + name + b"}").json()["name"] == f"{PAW}é"


def test_every_creation_is_another(client: Client) -> None:
    """Without an Idempotency-Key, the same body again adds another animal, whose id is greater."""
    new = client.new()
    ids = [client.post(new).json()["id"] for _ in range(5)]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize(
    ("member", "value"),
    [(member, value) for member, values in INVALID.items() for value in values],
    ids=lambda value: json.dumps(value)[:20],
)
def test_invalid_member(client: Client, member: str, value: object) -> None:
    """A member with an invalid value is refused, by name."""
    assert_error(client.post(client.new() | {member: value}), "invalid_request", naming=member)


@pytest.mark.parametrize(
    "number", ["1e2", "1E2", "1e0", "-1.0", "1e-1", "9223372036854775807.0", "1e400", "-1e400"]
)
def test_fraction_or_exponent(client: Client, number: str) -> None:
    """A number that is written with a fraction or an exponent is not an integer, whatever its value."""
    body = f'{{"name": "x", "categoryId": {number}}}'.encode()
    assert_error(client.post(body), "invalid_request", naming="categoryId")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, ["name", "categoryId"]),
        ({"categoryId": 1}, ["name"]),
        ({"name": "x", "status": "sold"}, ["categoryId"]),
        ({"Name": "x", "category_id": 1}, ["name", "categoryId"]),
        ({"pet": {"name": "x", "categoryId": 1}}, ["name", "categoryId"]),
        ({"categoryId": "1", "status": "x"}, ["name", "categoryId", "status"]),
    ],
)
def test_every_problem_is_named(client: Client, body: Pet, named: list[str]) -> None:
    """A body without a required member is refused, and the message names all that is wrong."""
    response = client.post(body)
    for member in named:
        assert_error(response, "invalid_request", naming=f"{member}: ")


@pytest.mark.parametrize(
    "extra",
    [
        {"id": 1},
        {"id": None, "token": "x", "pk": "counter", "value": 5, "createdBy": "x"},
        {
            "colour": {"deep": [1, {"er": None}]},
            "": 0,
            "__proto__": {},
            "näme": "x",
            "status ": "x",
            "Status": "x",
        },
    ],
)
def test_unknown_members_ignored(client: Client, extra: Pet) -> None:
    """Members that the interface does not know are ignored, an id too: ids are the service's."""
    before, new = client.create()["id"], client.new()
    pet = client.post(new | extra).json()
    assert pet == new | {"id": pet["id"]}
    assert pet["id"] > before
    assert client.get(pet["id"]).json() == pet


def test_parameter_refused(client: Client) -> None:
    """A parameter in the query string is refused, by name: createPet has none."""
    response = client.request("POST", "/pets?dryRun=1", [JSON], b'{"name": "x", "categoryId": 1}')
    assert_error(response, "invalid_request", naming="dryRun")


def test_refused_adds_nothing(client: Client, seeded_pets: SeededPets) -> None:
    """After a 400 there is no new animal."""
    name = client.new()["name"]
    for body in (
        {"name": name},
        f'{{"name": "{name}", "categoryId": 1'.encode(),
        client.new(name=name, status="x"),
    ):
        assert_error(client.post(body), "invalid_request")
    assert name not in [pet["name"] for pet in seeded_pets.onwards()]


ACCEPTED = [
    "application/json;charset=UTF-8",
    'application/json ; charset="utf-8"; profile=x',
    "APPLICATION/JSON",
    None,
]
REFUSED = [
    *[
        "text/plain",
        "text/json",
        "application/xml",
        "application/x-www-form-urlencoded",
        "application",
        "json",
        "*/*",
    ],
    *[
        "application/jsonp",
        "application/json-patch+json",
        "application/vnd.api+json",
        "x application/json",
    ],
    *["text/plain; application/json", "application/json, text/plain"],
]


@pytest.mark.parametrize("media_type", ACCEPTED)
@pytest.mark.parametrize("header", ["Content-Type", "cONTENT-tYPE"])
def test_media_type(client: Client, header: str, media_type: str | None) -> None:
    """JSON is taken whatever the case and the parameters of its media type, and without one."""
    headers = [(header, media_type)] if media_type else []
    assert (
        client.request("POST", "/pets", headers, b'{"name": "typed", "categoryId": 1}').status_code
        == 201
    )


@pytest.mark.parametrize("media_type", REFUSED)
def test_media_type_refused(client: Client, media_type: str) -> None:
    """Any other media type is refused, whatever the body is and however the header's name is spelled."""
    for header, body in (
        ("Content-Type", b'{"name": "x", "categoryId": 1}'),
        ("cONTENT-tYPE", b""),
    ):
        assert_error(
            client.request("POST", "/pets", [(header, media_type)], body), "unsupported_media_type"
        )
