"""An `Idempotency-Key` prevents a second creation ("Retries" in openapi.yaml)."""

import uuid

import pytest
from httpx2 import Client, Headers, Response
from jsonschema import Draft202012Validator

from tests.contract.client import Pet, assert_error, new_pet
from tests.contract.openapi import PARAMETERS

SCHEMA = Draft202012Validator(PARAMETERS["IdempotencyKey"]["schema"])


def post(client: Client, pet: Pet, key: str) -> Response:
    """Send createPet with an idempotency key."""
    headers = Headers({"Idempotency-Key": key}, encoding="utf-8")
    return client.post("/pets", json=pet, headers=headers)


def test_same_key_and_body_get_the_first_response(client: Client) -> None:
    """Quotes around a key don't matter, but the case of its last character does.

    This key has the maximum length.
    """
    key = f"{uuid.uuid4()}!#$%&'()*+,-./:;<=>?@[]^_`{{|}}~\\\"".ljust(255, "x")
    assert SCHEMA.is_valid(key)
    assert SCHEMA.is_valid(f'"{key}"')
    pet = new_pet()
    created = post(client, pet, f'"{key}"')
    replayed = post(client, pet, key)
    assert created.status_code == replayed.status_code == 201
    assert replayed.json() == created.json()
    assert "Idempotency-Replayed" not in created.headers
    assert replayed.headers["Idempotency-Replayed"] == "true"
    other = post(client, pet, f"{key[:-1]}X")
    assert other.json()["id"] != created.json()["id"]


@pytest.mark.parametrize(
    "change",
    [{"name": "other"}, {"categoryId": 2**53 + 1}, {"status": "sold"}],
    ids=str,
)
def test_same_key_with_another_body_gets_422(client: Client, change: Pet) -> None:
    """The first body still gets the first animal."""
    pet, key = new_pet(categoryId=2**53), str(uuid.uuid4())
    created = post(client, pet, key).json()
    response = post(client, pet | change, key)
    assert_error(response, 422, naming="Idempotency-Key")
    assert post(client, pet, key).json() == created


@pytest.mark.parametrize(
    "key",
    ["", '""', '"abc', '"a b"', "schlüssel", "x" * 256, f'"{"x" * 256}"'],
    ids=lambda key: key[:10],
)
def test_invalid_idempotency_key_gets_400(client: Client, key: str) -> None:
    """The key is empty, too long, half quoted, or has a character other than visible ASCII."""
    assert not SCHEMA.is_valid(key)
    assert_error(post(client, new_pet(), key), 400, naming="Idempotency-Key")


def test_two_idempotency_keys_get_400(client: Client) -> None:
    headers = [("Idempotency-Key", "x"), ("Idempotency-Key", "x")]
    response = client.post("/pets", json=new_pet(), headers=headers)
    assert_error(response, 400, naming="Idempotency-Key")
