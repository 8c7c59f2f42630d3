"""listPets: parameters, their limits and what a page holds (section 4.1 of the interface)."""

import pytest

from tests.contract.client import Client, assert_error, next_url, pets_of
from tests.contract.seeded_pets import filters

LIMITS_REFUSED = {
    "zero": "0",
    "above-maximum": "101",
    "negative": "-1",
    "negative-zero": "-0",
    "word": "abc",
    "fraction": "1.0",
    "exponent": "1e1",
    "hexadecimal": "0x5",
    "grouped": "1_0",
    "empty": "",
    "plus": "%2B5",
    "space-before": "%205",
    "space-after": "5%20",
    "line-feed-after": "5%0A",
    "nul-after": "5%00",
    "arabic-digit": "%D9%A5",
    "fullwidth-digit": "%EF%BC%95",
    "invalid-utf-8": "%FF",
    "null": "null",
    "list": "5,6",
    "int64-overflow": str(2**64 + 5),
    "thousands-of-digits": "5" * 4500,
}

STATUSES_REFUSED = {
    "unknown": "adopted",
    "upper-case": "AVAILABLE",
    "capital": "Sold",
    "empty": "",
    "space-after": "sold%20",
    "line-feed-after": "sold%0A",
    "list": "available,sold",
    "null": "null",
    "nul-after": "sold%00",
    "invalid-utf-8": "%FF",
}


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("limit", LIMITS_REFUSED.values(), ids=LIMITS_REFUSED.keys())
def test_limit_refused(client: Client, limit: str) -> None:
    """A limit that is not an integer from 1 to 100 is refused, by name."""
    assert_error(client.request("GET", f"/pets?limit={limit}"), "invalid_request", naming="limit")


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("status", STATUSES_REFUSED.values(), ids=STATUSES_REFUSED.keys())
def test_status_refused(client: Client, status: str) -> None:
    """A status that is not exactly one of the enumeration is refused, by name."""
    assert_error(client.request("GET", f"/pets?status={status}"), "invalid_request", naming="status")


@pytest.mark.smoke_read_only
@pytest.mark.parametrize(
    ("query", "name"),
    [
        pytest.param("limit=5&limit=5", "limit", id="limit-same"),
        pytest.param("limit=5&limit=6", "limit", id="limit-different"),
        pytest.param("limit=5&status=sold&limit=5", "limit", id="limit-apart"),
        pytest.param("limit=&limit=5", "limit", id="limit-empty-first"),
        pytest.param("limit=5&%6Cimit=5", "limit", id="limit-encoded"),
        pytest.param("status=sold&status=sold", "status", id="status-same"),
        pytest.param("status=sold&status=pending", "status", id="status-different"),
        pytest.param("cursor=x&cursor=x", "cursor", id="cursor"),
    ],
)
def test_parameter_twice(client: Client, query: str, name: str) -> None:
    """A parameter that is given twice is refused, even with the same value."""
    assert_error(client.request("GET", f"/pets?{query}"), "invalid_request", naming=name)


@pytest.mark.smoke_read_only
@pytest.mark.parametrize(
    "query",
    [
        pytest.param("colour=red", id="unknown"),
        pytest.param("limits=0", id="similar"),
        pytest.param("Limit=0", id="capital"),
        pytest.param("STATUS=x", id="upper-case"),
        pytest.param("limit%5B%5D=0", id="brackets"),
        pytest.param("id=x&id=y", id="twice"),
        pytest.param("", id="empty"),
        pytest.param("&&", id="separators"),
        pytest.param("=", id="no-name"),
    ],
)
def test_unknown_parameters_ignored(client: Client, query: str) -> None:
    """Parameters that the interface does not know, also by their case, are ignored."""
    plain = client.request("GET", "/pets?limit=1")
    response = client.request("GET", f"/pets?limit=1&{query}")
    assert response.status_code == 200
    assert response.json() == plain.json()


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("query", ["limit=%31", "limit=1&status=%73old", "%6Cimit=1", "limit=1&status=s%6fld"])
def test_parameters_decoded(client: Client, query: str) -> None:
    """Names and values are percent-decoded before they are looked at."""
    response = client.request("GET", f"/pets?{query}")
    assert response.status_code == 200
    assert len(response.json()) <= 1


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("query", ["limit=%2531", "status=%2573old"])
def test_parameters_decoded_once(client: Client, query: str) -> None:
    """What is still encoded after decoding once is not decoded again."""
    assert_error(client.request("GET", f"/pets?{query}"), "invalid_request")


@pytest.mark.smoke_read_only
@filters
def test_page(client: Client, status: str | None) -> None:
    """A page is an array of at most 20 animals in ascending order of id, all with the status that was asked for."""
    pets = pets_of(client.list(status=status))
    ids = [pet["id"] for pet in pets]
    assert len(pets) <= 20
    assert ids == sorted(set(ids))
    assert status is None or all(pet["status"] == status for pet in pets)


@pytest.mark.usefixtures("seeded_pets")
@pytest.mark.parametrize("limit", [None, 1, 2, 19, 20, 21, 99, 100], ids=lambda limit: str(limit or "default"))
def test_limit(client: Client, limit: int | None) -> None:
    """A list with more animals than the limit (20 unless given) is answered with exactly as many, and a link."""
    response = client.list(limit=limit)
    assert len(pets_of(response)) == (limit or 20)
    assert next_url(response) is not None
