"""createPet: members, their ranges, and that what is stored is what was sent (sections 2 and 4.2 of the interface)."""

import re
from typing import Any

import pytest

from tests.contract.client import JSON, Client, assert_error, eventually, pet_of, pets_of
from tests.contract.seeded_pets import STATUSES, SeededPets

INT64 = {
    "zero": 0,
    "one": 1,
    "negative": -1,
    "beyond-2^53": 2**53 + 1,
    "beyond-negative-2^53": -(2**53) - 1,
    "maximum": 2**63 - 1,
    "maximum-less-one": 2**63 - 2,
    "minimum": -(2**63),
    "minimum-and-one": -(2**63) + 1,
}

NAMES = {
    "one-character": "x",
    "256-characters": "x" * 256,
    "256-astral-characters": "\N{PAW PRINTS}" * 256,
    "emoji-sequence": "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{MICROSCOPE}\N{VARIATION SELECTOR-16}",
    "right-to-left": "\N{RIGHT-TO-LEFT OVERRIDE}חתול \N{ARABIC LETTER BEH}",
    "combining": "e\N{COMBINING ACUTE ACCENT}\N{COMBINING TILDE}",
    "precomposed": "\N{LATIN SMALL LETTER E WITH ACUTE}",
    "compatibility": "\N{LATIN SMALL LIGATURE FI}\N{FULLWIDTH DIGIT ONE}\N{KELVIN SIGN}",
    "quotes": "\"'`\\/\b\f",
    "escapes-spelled-out": "\\u0041\\n%41&amp;",
    "nul": "a\0b",
    "nul-alone": "\0",
    "controls": "".join(map(chr, range(1, 32))) + "x\x7f\x80\x9f",
    "white-space-around": " \t\r\n x \N{NO-BREAK SPACE}",
    "line-separators": "a\N{LINE SEPARATOR}b\N{PARAGRAPH SEPARATOR}c",
    "byte-order-mark": "\ufeffx",
    "noncharacters": "\uffff\ufdd0\U0010ffff",
    "private-use": "\ue000\U000f0000",
    "zero-width-space": "\u200b",
    "markup": "<script>alert(1)</script>",
    "templating": "{{7*7}}${7*7}#{7*7}%s%n{0}",
    "query": "'; DROP TABLE pets; --",
    "null-word": "null",
    "number-word": "123",
    "dynamodb-json": '{"S": "x"}',
}

WHITE_SPACE = {
    "space": " ",
    "many-spaces": " " * 256,
    "tab-and-line-feed": "\t\r\n",
    "no-break": "\N{NO-BREAK SPACE}",
    "ideographic": "\N{IDEOGRAPHIC SPACE}",
    "em": "\N{EM SPACE}",
    "next-line": "\x85",
    "line-separator": "\N{LINE SEPARATOR}",
    "byte-order-mark": "\ufeff",
    "information-separators": "\x1c\x1d\x1e\x1f",
    "mixed": " \N{THIN SPACE}\N{OGHAM SPACE MARK}\v\f",
}

INVALID: dict[str, tuple[str, Any]] = {
    **{f"name-{name}": ("name", text) for name, text in WHITE_SPACE.items()},
    "name-empty": ("name", ""),
    "name-257-characters": ("name", "x" * 257),
    "name-257-astral-characters": ("name", "\N{PAW PRINTS}" * 257),
    "name-null": ("name", None),
    "name-number": ("name", 1),
    "name-boolean": ("name", True),
    "name-array": ("name", ["Rex"]),
    "name-object": ("name", {"S": "Rex"}),
    "category-null": ("categoryId", None),
    "category-string": ("categoryId", "1"),
    "category-empty-string": ("categoryId", ""),
    "category-true": ("categoryId", True),
    "category-false": ("categoryId", False),
    "category-fraction": ("categoryId", 1.5),
    "category-whole-fraction": ("categoryId", 1.0),
    "category-array": ("categoryId", [1]),
    "category-object": ("categoryId", {"N": "1"}),
    "category-above-maximum": ("categoryId", 2**63),
    "category-below-minimum": ("categoryId", -(2**63) - 1),
    "category-far-above": ("categoryId", 2**64 + 1),
    "status-unknown": ("status", "adopted"),
    "status-null": ("status", None),
    "status-empty": ("status", ""),
    "status-upper-case": ("status", "AVAILABLE"),
    "status-space-after": ("status", "sold "),
    "status-number": ("status", 0),
    "status-boolean": ("status", True),
    "status-array": ("status", ["sold"]),
    "status-object": ("status", {"S": "sold"}),
}

NUMBERS_REFUSED = ["1.0", "1e2", "1E2", "1e0", "-1.0", "1e-1", "9223372036854775807.0", "1e400", "-1e400"]


@pytest.mark.parametrize("status", STATUSES)
def test_answer(client: Client, status: str) -> None:
    """The answer is 201 and the animal as sent, and its id, nothing else."""
    new = client.new(status=status)
    response = client.post(new)
    pet = pet_of(response)
    assert response.status_code == 201
    assert pet == new | {"id": pet["id"]}
    assert type(pet["id"]) is int
    assert pet["id"] >= 1
    assert "Idempotency-Replayed" not in response.headers


def test_status_stays_absent(client: Client, seeded_pets: SeededPets) -> None:
    """An animal without a status has none in any answer, and no filter matches it."""
    new = client.new()
    pet = pet_of(client.post(new))
    assert pet == new | {"id": pet["id"]}
    assert pet_of(client.get(pet["id"])) == pet
    assert pet in [listed for page in client.pages(seeded_pets.starts[None]) for listed in page]
    for status in STATUSES:
        assert pet["id"] not in [listed["id"] for page in client.pages(seeded_pets.starts[status]) for listed in page]


def test_ids_rise(client: Client) -> None:
    """A later animal has a greater id."""
    ids = [client.create()["id"] for _ in range(5)]
    assert ids == sorted(set(ids))


def test_equal_animals_are_two(client: Client) -> None:
    """Without an Idempotency-Key, the same body twice adds two animals."""
    new = client.new()
    assert pet_of(client.post(new))["id"] != pet_of(client.post(new))["id"]


@pytest.mark.parametrize("number", INT64.values(), ids=INT64.keys())
def test_category_kept_exactly(client: Client, seeded_pets: SeededPets, number: int) -> None:
    """Every int64 comes back digit by digit, beyond 2^53 too, in the raw text of each answer."""
    new = client.new(categoryId=number)
    response = client.post(new)
    pet = pet_of(response)
    assert pet == new | {"id": pet["id"]}
    for answer in (response, client.get(pet["id"]), client.page_with(pet["id"], seeded_pets.starts[None])):
        assert re.search(rf'"categoryId": ?{number}\b', answer.text), answer.text
    assert type(pet["categoryId"]) is int


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_name_kept_exactly(client: Client, seeded_pets: SeededPets, name: str) -> None:
    """Every character of a name comes back as it was sent: not trimmed, not normalised, not escaped twice."""
    new = client.new(name=name)
    pet = pet_of(client.post(new))
    assert pet == new | {"id": pet["id"]}
    assert pet_of(client.get(pet["id"])) == pet
    assert pet in pets_of(client.page_with(pet["id"], seeded_pets.starts[None]))


@pytest.mark.parametrize("name", ["\N{PAW PRINTS}é\0", "\ud83d\udc3e"], ids=["escaped", "surrogate-pair"])
def test_name_escaped_or_not(client: Client, name: str) -> None:
    """JSON has two spellings of a character; both are that character."""
    expected = name.encode("utf-16", "surrogatepass").decode("utf-16")
    body = client.new(name=name)
    assert pet_of(client.post(body))["name"] == expected


@pytest.mark.parametrize(("member", "value"), INVALID.values(), ids=INVALID.keys())
def test_invalid_member(client: Client, member: str, value: object) -> None:
    """A member with an invalid value is refused, by name."""
    assert_error(client.post(client.new(**{member: value})), "invalid_request", naming=member)


@pytest.mark.parametrize("number", NUMBERS_REFUSED)
def test_fraction_or_exponent(client: Client, number: str) -> None:
    """A number that is written with a fraction or an exponent is not an integer, whatever its value."""
    body = f'{{"name": "x", "categoryId": {number}}}'.encode()
    assert_error(client.post(body), "invalid_request", naming="categoryId")


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        pytest.param({}, "name", id="all"),
        pytest.param({"categoryId": 1}, "name", id="name"),
        pytest.param({"name": "x"}, "categoryId", id="category"),
        pytest.param({"name": "x", "status": "sold"}, "categoryId", id="category-with-status"),
        pytest.param({"Name": "x", "categoryId": 1}, "name", id="name-in-other-case"),
        pytest.param({"name": "x", "category_id": 1}, "categoryId", id="category-in-snake-case"),
        pytest.param({"pet": {"name": "x", "categoryId": 1}}, "name", id="nested"),
    ],
)
def test_missing_member(client: Client, body: dict[str, object], missing: str) -> None:
    """A body without a required member is refused, by name."""
    assert_error(client.post(body), "invalid_request", naming=missing)


def test_every_problem_is_named(client: Client) -> None:
    """A body with several invalid members is answered with all of them."""
    response = client.post({"categoryId": "1", "status": "x"})
    for member in ("name", "categoryId", "status"):
        assert_error(response, "invalid_request", naming=member)


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param({"id": 1}, id="id"),
        pytest.param({"id": "x"}, id="id-of-wrong-type"),
        pytest.param({"id": None, "token": "x", "pk": "counter", "value": 5}, id="names-of-the-store"),
        pytest.param({"colour": {"deep": [1, {"er": None}]}, "": 0, "__proto__": {}, "näme": "x"}, id="any"),
        pytest.param({"status ": "x", "Status": "x"}, id="nearly-known"),
    ],
)
def test_unknown_members_ignored(client: Client, extra: dict[str, object]) -> None:
    """Members that the interface does not know are ignored, an id too: ids are the service's."""
    before = client.create()["id"]
    new = client.new()
    pet = pet_of(client.post(new | extra))
    assert pet == new | {"id": pet["id"]}
    assert pet["id"] > before
    assert pet_of(client.get(pet["id"])) == pet


def test_refused_adds_nothing(client: Client, seeded_pets: SeededPets) -> None:
    """After a 400 there is no new animal."""
    first = client.create()
    for body in ({"name": "refused"}, b'{"name": "refused", "categoryId": 1', client.new(name="refused", status="x")):
        assert_error(client.post(body), "invalid_request")
    last = client.create()
    added = [
        pet["name"]
        for page in client.pages(seeded_pets.starts[None])
        for pet in page
        if first["id"] < pet["id"] < last["id"]
    ]
    assert "refused" not in added


@pytest.mark.parametrize("status", STATUSES)
def test_listed_by_status(client: Client, seeded_pets: SeededPets, status: str) -> None:
    """An animal appears in the list of its status."""
    pet = client.create(status=status)
    assert eventually(lambda: pet in [listed for page in client.pages(seeded_pets.starts[status]) for listed in page])


MEDIA_TYPES = [
    "application/json",
    "application/json; charset=utf-8",
    "application/json;charset=UTF-8",
    'application/json ; charset="utf-8"; profile=x',
    "APPLICATION/JSON",
    "Application/Json; Charset=UTF-8",
]

MEDIA_TYPES_REFUSED = [
    "text/plain",
    "text/json",
    "application/jsonp",
    "application/json-patch+json",
    "application/vnd.api+json",
    "application/xml",
    "application/octet-stream",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application",
    "json",
    "*/*",
    "x application/json",
    "text/plain; application/json",
    "application/json, text/plain",
]


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_media_type(client: Client, media_type: str) -> None:
    """JSON is taken whatever the case and the parameters of its media type."""
    body = b'{"name": "typed", "categoryId": 1}'
    assert client.request("POST", "/pets", [("Content-Type", media_type)], body).status_code == 201


def test_media_type_absent(client: Client) -> None:
    """A body without a media type is taken for JSON."""
    assert client.request("POST", "/pets", [], b'{"name": "untyped", "categoryId": 1}').status_code == 201


@pytest.mark.parametrize("media_type", MEDIA_TYPES_REFUSED)
def test_media_type_refused(client: Client, media_type: str) -> None:
    """Any other media type is refused, whatever the body is."""
    for body in (b'{"name": "x", "categoryId": 1}', b"name=x&categoryId=1", b""):
        response = client.request("POST", "/pets", [("Content-Type", media_type)], body)
        assert_error(response, "unsupported_media_type")


def test_header_name_ignores_case(client: Client) -> None:
    """The media type is found under any spelling of the header's name."""
    assert_error(client.request("POST", "/pets", [("cONTENT-tYPE", "text/plain")], b"{}"), "unsupported_media_type")
    response = client.request("POST", "/pets", [(JSON[0].lower(), JSON[1])], b'{"name": "x", "categoryId": 1}')
    assert response.status_code == 201
