"""getPet: the animal by its id, and the announcement of the operation's end."""

import pytest
from httpx2 import Client

from tests.contract.client import assert_error, create

# Percent-encoded.
UNKNOWN = f"""
0 -1 abc 1.0 1_0 %D9%A1 %20 %00 %FF 1%5C1 %7BpetId%7D 1;v=1
9223372036854775807 9223372036854775808 {"1" * 4500}
""".split()
# Spellings of an id that exists which are not that id. ("/": whether it splits the path or not.)
OTHER_SPELLINGS = ["+{}", "0{}", "%20{}", "{}%0A", "{},", "{}%2F1"]


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("pet_id", UNKNOWN)
def test_unknown(client: Client, pet_id: str) -> None:
    """What is not a positive int64 is answered like an animal that does not exist."""
    assert_error(client.get(f"/pets/{pet_id}"), "not_found")


@pytest.mark.parametrize("spelling", OTHER_SPELLINGS)
def test_other_spellings(client: Client, spelling: str) -> None:
    """An id is its decimal digits and nothing else."""
    pet_id = spelling.format(create(client)["id"])
    assert_error(client.get(f"/pets/{pet_id}"), "not_found")


def test_found(client: Client) -> None:
    """The path is percent-decoded once; headers and parameters of other operations are ignored."""
    pet = create(client)
    encoded = "".join(f"%3{digit}" for digit in str(pet["id"]))
    headers = {"Idempotency-Key": "", "Content-Type": "text/plain"}
    response = client.get(f"/pets/{encoded}?limit=0&colour=red", headers=headers)
    assert response.json() == pet
    twice = encoded.replace("%", "%25")
    assert_error(client.get(f"/pets/{twice}"), "not_found")


@pytest.mark.smoke_read_only
def test_deprecation_is_announced(client: Client) -> None:
    """Errors announce it too; when it ends, openapi.yaml says (RFC 9745, RFC 8594)."""
    response = client.get("/pets/x", auth=None)
    assert response.links["successor-version"]["url"] == f"{client.base_url}pets"
    assert response.headers["Deprecation"] == "@1764892800"
    assert response.headers["Sunset"] == "Thu, 05 Dec 2030 00:00:00 GMT"
