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
def test_key_with_another_body_is_refused(
    client: Client, key: str, others: Pet
) -> None:
    """The key still leads to the first animal."""
    pet = new(categoryId=2**53)
    first = create(client, pet, key)
    response = client.post("/pets", json=pet | others, headers={KEY: key})
    assert_error(response, "idempotency_key_reused", naming=KEY)
    assert create(client, pet, key, replayed="true") == first


def test_another_key_creates_another_animal(client: Client, key: str) -> None:
    """These keys differ only in the case of their last character."""
    pet, longest = new(), key.ljust(254, "x")
    first = create(client, pet, longest + "a")
    assert create(client, pet, longest + "A") != first


def test_key_is_the_same_with_and_without_quotes(client: Client, key: str) -> None:
    """This one has all kinds of visible characters, and the largest length."""
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
        '"a b"',
        "schlüssel",
        "a\N{NO-BREAK SPACE}b",
        "x" * 256,
        '"' + "x" * 256 + '"',
    ],
)
def test_invalid_key_is_refused(client: Client, value: str) -> None:
    """It is empty, too long, or has other characters than visible ones."""
    assert not DOCUMENTED.is_valid(value)
    headers = Headers({KEY: value}, encoding="utf-8")
    response = client.post("/pets", json=new(), headers=headers)
    assert_error(response, "invalid_request", naming=KEY)


def test_repeated_header_is_refused(client: Client) -> None:
    response = client.post("/pets", json=new(), headers=[(KEY, "x"), (KEY, "x")])
    assert_error(response, "invalid_request", naming=KEY)
