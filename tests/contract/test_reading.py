"""getPet returns the animal with an id, and is deprecated ("Deprecation" in openapi.yaml)."""

import pytest
from httpx2 import Client

from tests.contract.client import assert_error, create, new_pet

# Percent-encoded path segments that are not the id of an animal.
UNKNOWN_IDS = [
    "0",
    "abc",
    "1.0",
    "%D9%A1",  # the Arabic digit one
    "%20",
    "%00",
    "%FF",
    "%7BpetId%7D",
    "9223372036854775807",
    "9223372036854775808",
]


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("pet_id", UNKNOWN_IDS)
def test_unknown_or_malformed_id_gets_404(client: Client, pet_id: str) -> None:
    assert_error(client.get(f"/pets/{pet_id}"), 404)


# A server may split the path at %2F or not. It finds no animal in either case.
@pytest.mark.parametrize("spelling", ["+{}", "0{}", "{}%0A", "{}%2F1"])
def test_id_with_extra_characters_gets_404(client: Client, spelling: str) -> None:
    pet_id = spelling.format(create(client, new_pet())["id"])
    assert_error(client.get(f"/pets/{pet_id}"), 404)


def test_percent_encoded_id_is_decoded_once(client: Client) -> None:
    pet = create(client, new_pet())
    encoded_id = "".join(f"%3{digit}" for digit in str(pet["id"]))
    doubly_encoded_id = encoded_id.replace("%", "%25")
    assert client.get(f"/pets/{encoded_id}").json() == pet
    assert_error(client.get(f"/pets/{doubly_encoded_id}"), 404)


def test_query_and_unused_headers_are_ignored(client: Client) -> None:
    pet = create(client, new_pet())
    headers = {"Idempotency-Key": "", "Content-Type": "text/plain"}
    response = client.get(f"/pets/{pet['id']}?limit=0&colour=red", headers=headers)
    assert response.json() == pet


@pytest.mark.smoke_read_only
def test_even_a_404_announces_the_deprecation(client: Client) -> None:
    """RFC 9745, RFC 8594 and RFC 8288 define Deprecation, Sunset and Link."""
    response = client.get("/pets/x")
    assert_error(response, 404)
    assert response.links["successor-version"]["url"] == f"{client.base_url}pets"
    assert response.headers["Deprecation"] == "@1764892800"
    assert response.headers["Sunset"] == "Thu, 05 Dec 2030 00:00:00 GMT"
