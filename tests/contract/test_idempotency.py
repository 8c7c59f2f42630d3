"""Retrying a creation with an `Idempotency-Key`: the animal is added once."""

import uuid

import pytest

from tests.contract.client import Client, Pet, assert_error
from tests.contract.seeded_pets import SeededPets
from tests.support.openapi import STATUSES

KEY = "Idempotency-Key"


@pytest.fixture
def key() -> str:
    return str(uuid.uuid4())


def create(client: Client, new: Pet, key: str, replayed: str | None = None) -> Pet:
    """Create an animal with a key, and assert whether this was done before."""
    response = client.post(new, (KEY, key))
    assert response.status_code == 201, response.text
    assert response.headers.get("Idempotency-Replayed") == replayed
    pet: Pet = response.json()
    return pet


def test_repeated(client: Client, seeded_pets: SeededPets, key: str) -> None:
    """The same key and body get the first response again, marked as such, however often."""
    new = client.new()
    first = create(client, new, key)
    assert create(client, new, key, replayed="true") == first
    assert client.post(new, ("idempotency-KEY", key)).json() == first
    assert first in seeded_pets.walk()


@pytest.mark.parametrize(
    "others", [{"name": "other"}, {"categoryId": 2**53 + 1}, {"status": STATUSES[0]}]
)
def test_other_body(
    client: Client, seeded_pets: SeededPets, key: str, others: Pet
) -> None:
    """The same key with another body is refused, and adds nothing."""
    new = client.new(categoryId=2**53)
    first = create(client, new, key)
    response = client.post({**new, **others}, (KEY, key))
    assert_error(response, "idempotency_key_reused", naming=KEY)
    assert create(client, new, key, replayed="true") == first
    added = [pet for pet in seeded_pets.walk() if pet["id"] >= first["id"]]
    assert added == [first]


def test_other_key(client: Client, key: str) -> None:
    """Other keys are other creations, also where they differ only in case."""
    new = client.new()
    create(client, new, "a" + key)
    create(client, new, "A" + key)


@pytest.mark.parametrize(
    "characters", ["", "!#$%&'()*+,-./:;<=>?@[]^_`{|}~\\\"x", "x" * 219]
)
def test_quoted_is_bare(client: Client, key: str, characters: str) -> None:
    """A key of up to 255 visible characters is the same bare and in double quotes."""
    new, bare = client.new(), key + characters
    first = create(client, new, f'"{bare}"')
    assert create(client, new, bare, replayed="true") == first


@pytest.mark.parametrize(
    "value",
    [
        "",
        '""',
        '"abc',
        'abc"',
        "a b",
        '"a b"',
        "a\tb",
        "schlüssel",
        b"schl\xfcssel",
        "a\N{NO-BREAK SPACE}b",
        "x" * 256,
        '"' + "x" * 256 + '"',
        "x" * 4000,
    ],
)
def test_invalid(client: Client, value: str | bytes) -> None:
    """A key that is empty, too long, or not made of visible characters is refused, by name."""
    assert_error(client.post(client.new(), (KEY, value)), "invalid_request", naming=KEY)


def test_twice(client: Client) -> None:
    """A key that is sent twice is refused."""
    response = client.post(client.new(), (KEY, "x"), (KEY, "x"))
    assert_error(response, "invalid_request", naming=KEY)


def test_refused_body_is_not_remembered(client: Client, key: str) -> None:
    """A request that was refused has not used its key: the corrected one is a first one."""
    assert_error(client.post({"name": "x"}, (KEY, key)), "invalid_request")
    create(client, client.new(), key)


def test_scoped_to_api_key(client: Client, second_client: Client, key: str) -> None:
    """The same Idempotency-Key under another API key is another creation."""
    new = client.new()
    first = create(client, new, key)
    assert create(second_client, new, key)["id"] != first["id"]
