"""getPet: the animal by its id, and the announcement of the operation's end."""

import httpx2
import pytest

from tests.contract.client import Client, assert_error

UNKNOWN = [
    "0",
    "-1",
    "abc",
    "1.0",
    "1_0",
    "%D9%A1",
    "%20",
    "%00",
    "%FF",
    "1%5C1",
    "%7BpetId%7D",
    "1;v=1",
    "9223372036854775807",
    "9223372036854775808",
]
# Spellings of an id that exists which are not that id. ("/": whether it splits the path or not.)
OTHER_SPELLINGS = ["+{}", "0{}", "%20{}", "{}%0A", "{},", "{}%2F1"]


def get(client: Client, pet_id: str) -> httpx2.Response:
    """Send getPet; the identifier is sent as written."""
    return client.request("GET", f"/pets/{pet_id}")


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("pet_id", [*UNKNOWN, "1" * 4500])
def test_unknown(client: Client, pet_id: str) -> None:
    """What is not a positive int64 is answered like an animal that does not exist."""
    assert_error(get(client, pet_id), "not_found")


@pytest.mark.parametrize("spelling", OTHER_SPELLINGS)
def test_other_spellings(client: Client, spelling: str) -> None:
    """An id is its decimal digits and nothing else."""
    assert_error(get(client, spelling.format(client.create()["id"])), "not_found")


def test_decoded_once(client: Client) -> None:
    """The path is percent-decoded, and decoded once."""
    pet = client.create()
    encoded = "".join(f"%3{digit}" for digit in str(pet["id"]))
    assert get(client, encoded).json() == pet
    assert_error(get(client, encoded.replace("%", "%25")), "not_found")


def test_parameters_and_headers_of_others_are_ignored(client: Client) -> None:
    """Query parameters too: the interface gives getPet no 400, and a 404 would be wrong."""
    pet = client.create()
    headers = [("Idempotency-Key", ""), ("Content-Type", "text/plain")]
    response = client.request("GET", f"/pets/{pet['id']}?limit=0&colour=red", headers)
    assert response.json() == pet


@pytest.mark.smoke_read_only
def test_deprecation_is_announced(client: Client) -> None:
    """Errors announce it too; when it ends, openapi.yaml says (RFC 9745, RFC 8594)."""
    response = client.request("GET", "/pets/x", authenticate=False)
    assert response.links["successor-version"]["url"] == f"{client.base_url}/pets"
    assert response.headers["Deprecation"] == "@1764892800"
    assert response.headers["Sunset"] == "Thu, 05 Dec 2030 00:00:00 GMT"
