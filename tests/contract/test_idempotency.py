"""Retrying a creation with an `Idempotency-Key`: the animal is added once."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.contract.client import Client, Pet, assert_error, pet_of
from tests.contract.seeded_pets import SeededPets

KEY = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"


@pytest.fixture
def key() -> str:
    return str(uuid.uuid4())


def named(client: Client, seeded_pets: SeededPets, name: str) -> list[Pet]:
    return [pet for page in client.pages(seeded_pets.starts[None]) for pet in page if pet["name"] == name]


def assert_replay(response: httpx.Response, first: httpx.Response) -> None:
    assert response.status_code == 201
    assert response.headers[REPLAYED] == "true"
    assert response.text == first.text


@pytest.mark.parametrize(
    "members",
    [
        pytest.param({}, id="without-status"),
        pytest.param({"status": "sold"}, id="with-status"),
        pytest.param({"name": "\0 \N{PAW PRINTS}", "categoryId": -(2**63)}, id="extremes"),
    ],
)
def test_repeated(client: Client, seeded_pets: SeededPets, key: str, members: dict[str, Any]) -> None:
    """The same key and body get the first answer again, marked as such, however often; one animal is added."""
    new = client.new(**members)
    before = len(named(client, seeded_pets, new["name"]))
    first = client.post(new, (KEY, key))
    assert first.status_code == 201
    assert REPLAYED not in first.headers
    for _ in range(3):
        assert_replay(client.post(new, (KEY, key)), first)
    assert len(named(client, seeded_pets, new["name"])) == before + 1
    assert pet_of(client.get(pet_of(first)["id"])) == pet_of(first)


@pytest.mark.parametrize(
    "change",
    [{"name": "other"}, {"categoryId": 2}, {"status": "sold"}, {"categoryId": 2**53 + 1}],
    ids=["name", "category", "status", "large-category"],
)
def test_other_body(client: Client, seeded_pets: SeededPets, key: str, change: dict[str, Any]) -> None:
    """The same key with another body is refused, adds nothing, and leaves the first answer as it was."""
    new = client.new()
    first = client.post(new, (KEY, key))
    other = new | change
    before = len(named(client, seeded_pets, other["name"]))
    assert_error(client.post(other, (KEY, key)), "idempotency_key_reused", naming=KEY)
    assert len(named(client, seeded_pets, other["name"])) == before
    assert_replay(client.post(new, (KEY, key)), first)


def test_numbers_beyond_2_53_differ(client: Client, key: str) -> None:
    """Two bodies that a parser with floating-point numbers could not tell apart are two bodies."""
    new = client.new(categoryId=2**53)
    assert client.post(new, (KEY, key)).status_code == 201
    assert_error(client.post(new | {"categoryId": 2**53 + 1}, (KEY, key)), "idempotency_key_reused")


def test_status_taken_away(client: Client, key: str) -> None:
    """A body without the status that the first one had is another body."""
    new = client.new(status="sold")
    assert client.post(new, (KEY, key)).status_code == 201
    del new["status"]
    assert_error(client.post(new, (KEY, key)), "idempotency_key_reused")


def test_other_key(client: Client) -> None:
    """Two keys are two creations, also where they differ only in case."""
    key, new = uuid.uuid4().hex + "a", client.new()
    ids = {pet_of(client.post(new, (KEY, each)))["id"] for each in (key, key.upper(), key + "a")}
    assert len(ids) == 3


def test_quoted_is_bare(client: Client, key: str) -> None:
    """A key in double quotes, as the IETF's draft has it, is the same as the bare one."""
    new = client.new()
    first = client.post(new, (KEY, f'"{key}"'))
    assert first.status_code == 201
    assert_replay(client.post(new, (KEY, key)), first)


def test_header_name_ignores_case(client: Client, key: str) -> None:
    """Header names are case-insensitive (RFC 9110, section 5.1)."""
    new = client.new()
    first = client.post(new, ("idempotency-KEY", key))
    assert_replay(client.post(new, ("IDEMPOTENCY-key", key)), first)


@pytest.mark.parametrize("length", [1, 255])
@pytest.mark.parametrize("form", ["{}", '"{}"'], ids=["bare", "quoted"])
def test_length(client: Client, form: str, length: int) -> None:
    """A key has 1 to 255 characters."""
    # One visible character is not a unique key: another run may have used it, with another body.
    response = client.post(client.new(), (KEY, form.format((uuid.uuid4().hex * 8)[:length])))
    assert response.status_code == 201 or (length == 1 and response.status_code == 422), response.text


def test_every_visible_character(client: Client) -> None:
    """Every visible ASCII character may be in a key."""
    key = uuid.uuid4().hex + "".join(map(chr, range(0x21, 0x7F)))
    new = client.new()
    first = client.post(new, (KEY, key))
    assert_replay(client.post(new, (KEY, key)), first)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="empty"),
        pytest.param('""', id="empty-quoted"),
        pytest.param('"abc', id="quote-at-the-start-only"),
        pytest.param('abc"', id="quote-at-the-end-only"),
        pytest.param("x" * 256, id="256-characters"),
        pytest.param(f'"{"x" * 256}"', id="256-characters-quoted"),
        pytest.param("x" * 4000, id="thousands"),
        pytest.param("a b", id="space"),
        pytest.param('"a b"', id="space-quoted"),
        pytest.param('" "', id="space-alone-quoted"),
        pytest.param("a\tb", id="tab"),
        pytest.param("schlüssel".encode(), id="not-ascii"),
        pytest.param("schl\xfcssel".encode("latin-1"), id="latin-1"),
        pytest.param("a\N{NO-BREAK SPACE}b".encode(), id="no-break-space"),
        pytest.param("a\N{ZERO WIDTH SPACE}b".encode(), id="zero-width-space"),
    ],
)
def test_invalid(client: Client, value: str | bytes) -> None:
    """A key that is empty, too long, or has characters that can not be seen is refused, by name."""
    assert_error(client.post(client.new(), (KEY, value)), "invalid_request", naming=KEY)


@pytest.mark.parametrize("second", ["same", "other"])
def test_twice(client: Client, key: str, second: str) -> None:
    """A key that is sent twice is refused."""
    headers = [(KEY, key), (KEY, key if second == "same" else "other")]
    assert_error(client.post(client.new(), *headers), "invalid_request", naming=KEY)


def test_refused_body_is_not_remembered(client: Client, key: str) -> None:
    """A request that was refused has not used its key: the corrected one is a first one."""
    assert_error(client.post({"name": "x"}, (KEY, key)), "invalid_request")
    response = client.post(client.new(), (KEY, key))
    assert response.status_code == 201
    assert REPLAYED not in response.headers


def test_raced(client: Client, seeded_pets: SeededPets, key: str) -> None:
    """Requests with the same key at the same time add one animal and all get it; one of them was the first."""
    new = client.new(status="pending")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.post(new, (KEY, key)), range(8)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    assert [answer.headers.get(REPLAYED) for answer in answers].count(None) == 1
    assert len(named(client, seeded_pets, new["name"])) == 1


def test_scoped_to_api_key(client: Client, second_client: Client, key: str) -> None:
    """The same Idempotency-Key under another API key is another creation, even with another body."""
    first = client.post(client.new(), (KEY, key))
    other = second_client.post(second_client.new(), (KEY, key))
    assert first.status_code == other.status_code == 201
    assert REPLAYED not in other.headers
    assert pet_of(first)["id"] != pet_of(other)["id"]


def test_shared_catalogue(client: Client, second_client: Client) -> None:
    """Animals belong to the store, not to the key that added them."""
    pet = client.create()
    assert pet_of(second_client.get(pet["id"])) == pet
