"""Retrying a creation with an `Idempotency-Key`: the animal is added once."""

import uuid

import pytest
from jsonschema import Draft202012Validator

from tests.contract.client import Client, Pet, assert_error
from tests.support.openapi import STATUSES, document

KEY = "Idempotency-Key"
SCHEMA = document()["components"]["parameters"]["IdempotencyKey"]["schema"]
DOCUMENTED = Draft202012Validator(SCHEMA)


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


@pytest.mark.parametrize(
    "others", [{"name": "other"}, {"categoryId": 2**53 + 1}, {"status": STATUSES[0]}]
)
def test_other_body(client: Client, key: str, others: Pet) -> None:
    """The same key with another body is refused, and still leads to the first animal."""
    new = client.new(categoryId=2**53)
    first = create(client, new, key)
    response = client.post(new | others, (KEY, key))
    assert_error(response, "idempotency_key_reused", naming=KEY)
    assert create(client, new, key, replayed="true") == first


def test_other_key(client: Client, key: str) -> None:
    """Other keys are other creations, also where they differ in the case of the last character."""
    new, longest = client.new(), key.ljust(254, "x")
    first = create(client, new, longest + "a")
    assert create(client, new, longest + "A") != first


@pytest.mark.parametrize(
    "characters", ["!#$%&'()*+,-./:;<=>?@[]^_`{|}~\\\"x", "x" * 219]
)
def test_quoted_is_bare(client: Client, key: str, characters: str) -> None:
    """A key of up to 255 visible characters is the same bare and in double quotes."""
    new, bare = client.new(), key + characters
    assert DOCUMENTED.is_valid(bare)
    assert DOCUMENTED.is_valid(f'"{bare}"')
    first = create(client, new, f'"{bare}"')
    assert create(client, new, bare, replayed="true") == first


@pytest.mark.parametrize(
    "value",
    [
        "",
        '""',
        '"abc',
        'abc"',
        '"a b"',
        "schlüssel",
        "a\N{NO-BREAK SPACE}b",
        "x" * 256,
        '"' + "x" * 256 + '"',
    ],
)
def test_invalid(client: Client, value: str) -> None:
    """A key that is empty, too long, or not made of visible characters is refused, by name."""
    assert not DOCUMENTED.is_valid(value)
    assert_error(client.post(client.new(), (KEY, value)), "invalid_request", naming=KEY)


def test_twice(client: Client) -> None:
    """A key that is sent twice is refused."""
    response = client.post(client.new(), (KEY, "x"), (KEY, "x"))
    assert_error(response, "invalid_request", naming=KEY)
