"""Retrying a creation with an `Idempotency-Key`: the animal is added once."""

import uuid

import pytest
from httpx2 import Client, Headers
from jsonschema import Draft202012Validator

from tests.contract.client import Pet, assert_error, new
from tests.support.openapi import PARAMETERS, STATUSES

KEY = "Idempotency-Key"
DOCUMENTED = Draft202012Validator(PARAMETERS["IdempotencyKey"]["schema"])


@pytest.fixture
def key() -> str:
    return str(uuid.uuid4())


def create(client: Client, pet: Pet, key: str, replayed: str | None = None) -> Pet:
    """Create an animal with a key, and assert whether this was done before."""
    response = client.post("/pets", json=pet, headers={KEY: key})
    assert response.status_code == 201, response.text
    assert response.headers.get("Idempotency-Replayed") == replayed
    created: Pet = response.json()
    return created


@pytest.mark.parametrize(
    "others", [{"name": "other"}, {"categoryId": 2**53 + 1}, {"status": STATUSES[0]}]
)
def test_other_body(client: Client, key: str, others: Pet) -> None:
    """The same key with another body is refused, and still leads to the first animal."""
    pet = new(categoryId=2**53)
    first = create(client, pet, key)
    response = client.post("/pets", json=pet | others, headers={KEY: key})
    assert_error(response, "idempotency_key_reused", naming=KEY)
    assert create(client, pet, key, replayed="true") == first


def test_other_key(client: Client, key: str) -> None:
    """Other keys are other creations, also where they differ in the case of the last character."""
    pet, longest = new(), key.ljust(254, "x")
    first = create(client, pet, longest + "a")
    assert create(client, pet, longest + "A") != first


def test_quoted_is_bare(client: Client, key: str) -> None:
    """A key of up to 255 visible characters is the same bare and in double quotes."""
    pet, bare = new(), f"{key}!#$%&'()*+,-./:;<=>?@[]^_`{{|}}~\\\"".ljust(255, "x")
    assert DOCUMENTED.is_valid(bare)
    assert DOCUMENTED.is_valid(f'"{bare}"')
    first = create(client, pet, f'"{bare}"')
    assert create(client, pet, bare, replayed="true") == first


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
    headers = Headers({KEY: value}, encoding="utf-8")
    response = client.post("/pets", json=new(), headers=headers)
    assert_error(response, "invalid_request", naming=KEY)


def test_twice(client: Client) -> None:
    """A key that is sent twice is refused."""
    response = client.post("/pets", json=new(), headers=[(KEY, "x"), (KEY, "x")])
    assert_error(response, "invalid_request", naming=KEY)
