"""getPet: the animal by its id, and the announcement of the operation's end (section 4.3 of the interface)."""

import time

import pytest

from tests.contract.client import Client, assert_error, pet_of
from tests.contract.seeded_pets import filters

UNKNOWN = {
    "zero": "0",
    "negative": "-1",
    "negative-zero": "-0",
    "word": "abc",
    "fraction": "1.5",
    "whole-fraction": "1.0",
    "exponent": "1e0",
    "hexadecimal": "0x1",
    "grouped": "1_0",
    "int64-maximum": str(2**63 - 1),
    "int64-overflow": str(2**63),
    "int64-wrapped": str(2**64 + 1),
    "int64-minimum": str(-(2**63)),
    "thousands-of-digits": "1" * 4500,
    "arabic-digit": "%D9%A1",
    "fullwidth-digit": "%EF%BC%91",
    "superscript-digit": "%C2%B9",
    "space": "%20",
    "nul": "%00",
    "invalid-utf-8": "%FF",
    "backslash": "1%5C1",
    "quote": "%22",
    "braces": "%7BpetId%7D",
    "semicolon": "1;v=1",
    "null": "null",
}

# Spellings of an id that exists which are not that id.
NOT_CANONICAL = {
    "plus": "%2B{}",
    "raw-plus": "+{}",
    "leading-zero": "0{}",
    "space-before": "%20{}",
    "space-after": "{}%20",
    "line-feed-after": "{}%0A",
    "nul-after": "{}%00",
    "fraction": "{}.0",
    "quoted": "%22{}%22",
    "comma": "{},",
}


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("pet_id", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_unknown(client: Client, pet_id: str) -> None:
    """What is not a positive int64 is answered like an animal that does not exist."""
    assert_error(client.get(pet_id), "not_found")


@pytest.mark.parametrize("spelling", NOT_CANONICAL.values(), ids=NOT_CANONICAL.keys())
def test_other_spellings(client: Client, spelling: str) -> None:
    """An id is its decimal digits and nothing else: another spelling of an animal's id is not found."""
    assert_error(client.get(spelling.format(client.create()["id"])), "not_found")


def test_decoded_once(client: Client) -> None:
    """The path is percent-decoded, and decoded once."""
    pet = client.create()
    digits = str(pet["id"])
    encoded = "".join(f"%{ord(digit):X}" for digit in digits)
    assert pet_of(client.get(encoded)) == pet
    assert_error(client.get(encoded.replace("%", "%25")), "not_found")


def test_encoded_slash(client: Client) -> None:
    """Whether an encoded slash splits the path is the server's business: there is no such animal and no such path."""
    assert_error(client.get(f"{client.create()['id']}%2F1"), "not_found")


def test_query_and_headers_ignored(client: Client) -> None:
    """Parameters of other operations have no meaning here."""
    pet = client.create()
    response = client.request(
        "GET", f"/pets/{pet['id']}?limit=0&status=x&cursor=x", [("Idempotency-Key", ""), ("Content-Type", "text/plain")]
    )
    assert pet_of(response) == pet


@filters
def test_reads_what_was_created(client: Client, status: str | None) -> None:
    """The animal is answered as it was created, member by member, at once."""
    pet = client.create(**({"status": status} if status else {}))
    response = client.get(pet["id"])
    assert response.status_code == 200
    assert pet_of(response) == pet


def test_deprecation_is_announced(client: Client) -> None:
    """Every answer carries the same announcement: since when, until when, and what to use instead."""
    pet_id = client.create()["id"]
    answers = [
        client.get(pet_id),
        client.get(2**63 - 1),
        client.get("x"),
        client.request("GET", f"/pets/{pet_id}", authenticate=False),
    ]
    assert [answer.status_code for answer in answers] == [200, 404, 404, 401]
    for answer in answers:
        assert int(answer.headers["Deprecation"].removeprefix("@")) < time.time()  # RFC 9745: it is deprecated already
        assert answer.headers["Sunset"] == "Thu, 05 Dec 2030 00:00:00 GMT"
        assert answer.links["successor-version"]["url"] == f"{client.base_url}/pets"
        assert answer.headers["Deprecation"] == answers[0].headers["Deprecation"]


def test_successor_works(client: Client) -> None:
    """What the announcement points to is the list."""
    url = client.get(1).links["successor-version"]["url"]
    assert client.request("GET", url).status_code == 200


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("path", ["/pets", "/pets?limit=0"], ids=["page", "error"])
def test_others_are_not_deprecated(client: Client, path: str) -> None:
    """Only getPet is deprecated."""
    response = client.request("GET", path)
    assert not {"Deprecation", "Sunset"} & {name.title() for name in response.headers}
    assert "successor-version" not in response.links
