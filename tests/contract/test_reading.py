"""getPet: the animal by its id, and the announcement of the operation's end (section 4.3 of the interface)."""

import time

import pytest

from tests.contract.client import Client, assert_error
from tests.contract.seeded_pets import filters

UNKNOWN = [
    *[
        "0",
        "-1",
        "-0",
        "abc",
        "null",
        "1.5",
        "1.0",
        "1e0",
        "0x1",
        "1_0",
        "%D9%A1",
        "%EF%BC%91",
        "%C2%B9",
    ],
    *["%20", "%00", "%FF", "1%5C1", "%22", "%7BpetId%7D", "1;v=1"],
    *[str(2**63 - 1), str(2**63), str(2**64 + 1), str(-(2**63)), "1" * 4500],
]

# Spellings of an id that exists which are not that id.
NOT_CANONICAL = [
    "%2B{}",
    "+{}",
    "0{}",
    "%20{}",
    "{}%20",
    "{}%0A",
    "{}%00",
    "{}.0",
    "%22{}%22",
    "{},",
]


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("pet_id", UNKNOWN, ids=lambda pet_id: pet_id[:20])
def test_unknown(client: Client, pet_id: str) -> None:
    """What is not a positive int64 is answered like an animal that does not exist."""
    assert_error(client.get(pet_id), "not_found")


@pytest.mark.parametrize("spelling", NOT_CANONICAL)
def test_other_spellings(client: Client, spelling: str) -> None:
    """An id is its decimal digits and nothing else: another spelling of an animal's id is not found."""
    assert_error(client.get(spelling.format(client.create()["id"])), "not_found")


def test_decoded_once(client: Client) -> None:
    """The path is percent-decoded, and decoded once."""
    pet = client.create()
    encoded = "".join(f"%{ord(digit):X}" for digit in str(pet["id"]))
    assert client.get(encoded).json() == pet
    assert_error(client.get(encoded.replace("%", "%25")), "not_found")


def test_encoded_slash(client: Client) -> None:
    """Whether an encoded slash splits the path is the server's business: there is no such animal and no such path."""
    assert_error(client.get(f"{client.create()['id']}%2F1"), "not_found")


@filters
def test_reads_what_was_created(client: Client, status: str | None) -> None:
    """The animal is answered as it was created, at once; parameters of other operations have no meaning here."""
    pet = client.create(status=status)
    headers = [("Idempotency-Key", ""), ("Content-Type", "text/plain")]
    response = client.request("GET", f"/pets/{pet['id']}?limit=0&status=x&cursor=x", headers)
    assert response.status_code == 200
    assert response.json() == pet


def test_deprecation_is_announced(client: Client) -> None:
    """Every response carries the same announcement, of which only the date of the past is not in openapi.yaml."""
    pet_id = client.create()["id"]
    responses = [
        *(client.get(each) for each in (pet_id, 2**63 - 1, "x")),
        client.request("GET", f"/pets/{pet_id}", authenticate=False),
    ]
    assert [response.status_code for response in responses] == [200, 404, 404, 401]
    assert {response.links["successor-version"]["url"] for response in responses} == {
        f"{client.base_url}/pets"
    }
    (since,) = {response.headers["Deprecation"] for response in responses}
    assert int(since.removeprefix("@")) < time.time()  # RFC 9745: it is deprecated already


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("path", ["/pets", "/pets?limit=0"])
def test_others_are_not_deprecated(client: Client, path: str) -> None:
    """Only getPet is deprecated."""
    response = client.request("GET", path)
    assert not {"deprecation", "sunset"} & {*response.headers}
    assert "successor-version" not in response.links
