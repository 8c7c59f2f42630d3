"""Retrying a creation with an `Idempotency-Key`: the animal is added once."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.contract.client import Client, Pet, assert_error
from tests.contract.seeded_pets import SeededPets

KEY = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"


@pytest.fixture
def key() -> str:
    return str(uuid.uuid4())


def named(seeded_pets: SeededPets, name: str) -> list[Pet]:
    return [pet for pet in seeded_pets.onwards() if pet["name"] == name]


def create_first(client: Client, new: Pet, key: str) -> httpx.Response:
    response = client.post(new, (KEY, key))
    assert response.status_code == 201
    assert REPLAYED not in response.headers
    return response


def assert_replay(response: httpx.Response, first: httpx.Response) -> None:
    assert response.status_code == 201
    assert response.headers[REPLAYED] == "true"
    assert response.text == first.text


@pytest.mark.parametrize(
    "members", [{}, {"status": "sold"}, {"name": "\0 \N{PAW PRINTS}", "categoryId": -(2**63)}]
)
def test_repeated(client: Client, seeded_pets: SeededPets, key: str, members: Pet) -> None:
    """The same key and body get the first response again, marked as such, however often; one animal is added."""
    new = client.new(**members)
    before = len(named(seeded_pets, new["name"]))
    first = create_first(client, new, key)
    for header in (KEY, "idempotency-KEY", "IDEMPOTENCY-key"):
        assert_replay(client.post(new, (header, key)), first)
    assert len(named(seeded_pets, new["name"])) == before + 1
    assert client.get(first.json()["id"]).json() == first.json()


@pytest.mark.parametrize(
    ("members", "change"),
    [
        ({}, {"name": "other"}),
        ({}, {"categoryId": 2}),
        ({}, {"status": "sold"}),
        ({"status": "sold"}, {"status": None}),
        ({"categoryId": 2**53}, {"categoryId": 2**53 + 1}),
    ],
)
def test_other_body(
    client: Client, seeded_pets: SeededPets, key: str, members: Pet, change: Pet
) -> None:
    """The same key with another body is refused, adds nothing, and leaves the first response as it was."""
    new = client.new(**members)
    first = create_first(client, new, key)
    other = client.new(**new | change)
    before = named(seeded_pets, other["name"])
    assert_error(client.post(other, (KEY, key)), "idempotency_key_reused", naming=KEY)
    assert named(seeded_pets, other["name"]) == before
    assert_replay(client.post(new, (KEY, key)), first)


def test_other_key(client: Client) -> None:
    """Two keys are two creations, also where they differ only in case."""
    key, new = uuid.uuid4().hex + "a", client.new()
    ids = {client.post(new, (KEY, each)).json()["id"] for each in (key, key.upper(), key + "a")}
    assert len(ids) == 3


@pytest.mark.parametrize("characters", ["", "".join(map(chr, range(0x21, 0x7F))), "x" * 223])
def test_quoted_is_bare(client: Client, characters: str) -> None:
    """A key of up to 255 visible characters is the same bare and in double quotes, as the IETF's draft has it."""
    key, new = uuid.uuid4().hex + characters, client.new()
    first = create_first(client, new, f'"{key}"')
    assert_replay(client.post(new, (KEY, key)), first)


@pytest.mark.parametrize(
    "value",
    [
        *["", '""', '"abc', 'abc"', "a b", '"a b"', '" "', "a\tb"],
        *["schlüssel", b"schl\xfcssel", "a\N{NO-BREAK SPACE}b", "a\N{ZERO WIDTH SPACE}b"],
        *["x" * 256, f'"{"x" * 256}"', "x" * 4000],
    ],
    ids=lambda value: repr(value)[:20],
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
    create_first(client, client.new(), key)


def test_raced(client: Client, seeded_pets: SeededPets, key: str) -> None:
    """Requests with the same key at the same time add one animal and all get it; one of them was the first."""
    new = client.new(status="pending")
    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(lambda _: client.post(new, (KEY, key)), range(8)))
    assert {response.status_code for response in responses} == {201}
    assert len({response.text for response in responses}) == 1
    assert [response.headers.get(REPLAYED) for response in responses].count(None) == 1
    assert len(named(seeded_pets, new["name"])) == 1


def test_scoped_to_api_key(client: Client, second_client: Client, key: str) -> None:
    """The same Idempotency-Key under another API key is another creation; the animals are the store's."""
    first = create_first(client, client.new(), key).json()
    other = create_first(second_client, second_client.new(), key).json()
    assert first["id"] != other["id"]
    assert second_client.get(first["id"]).json() == first
