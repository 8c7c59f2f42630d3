"""listPets: parameters, their limits and what a page holds (section 4.1 of the interface)."""

import pytest

from tests.contract.client import Client, assert_error, next_url
from tests.contract.seeded_pets import filters

INVALID = {
    "limit": [
        *["0", "101", "-1", "-0", "", "abc", "null", "1.0", "1e1", "0x5", "1_0", "5,6", "%2531"],
        *[
            "%2B5",
            "%205",
            "5%20",
            "5%0A",
            "5%00",
            "%D9%A5",
            "%EF%BC%95",
            "%FF",
            str(2**64 + 5),
            "5" * 4500,
        ],
        *["5&limit=5", "5&status=sold&limit=6", "&limit=5", "5&%6Cimit=5"],
    ],
    "status": [
        *["adopted", "AVAILABLE", "Sold", "", "null", "available,sold"],
        *[
            "sold%20",
            "sold%0A",
            "sold%00",
            "%2573old",
            "%FF",
            "sold&status=sold",
            "sold&status=pending",
        ],
    ],
    "cursor": ["", "1", "%FF", "%2531", "eyJpZCI6IDF9", "A" * 24, "x" * 4000],
}


@pytest.mark.smoke_read_only
@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param(name, value, id=f"{name}-{value[:20]}")
        for name, values in INVALID.items()
        for value in values
    ],
)
def test_parameter_refused(client: Client, name: str, value: str) -> None:
    """A limit that is not an integer from 1 to 100, another status or cursor, and what is given twice is refused."""
    assert_error(client.request("GET", f"/pets?{name}={value}"), "invalid_request", naming=name)


@pytest.mark.smoke_read_only
@pytest.mark.parametrize(
    ("query", "unknown"),
    [
        ("stauts=sold", "stauts"),
        ("page=2&limit=5", "page"),
        ("Limit=5", "Limit"),
        ("limit%5B%5D=5", "limit[]"),
        ("%6Cimit=5&c%6Flour=red", "colour"),
    ],
)
def test_unknown_parameter_refused(client: Client, query: str, unknown: str) -> None:
    """A parameter that the interface does not have is refused, by name, and so is another case of one that it has."""
    assert_error(client.request("GET", f"/pets?{query}"), "invalid_request", naming=unknown)


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("query", ["limit=%31", "%6Cimit=1", "limit=1&&"])
def test_parameters_decoded(client: Client, query: str) -> None:
    """Names and values are percent-decoded."""
    assert client.request("GET", f"/pets?{query}").json() == client.list(limit=1).json()


@pytest.mark.smoke_read_only
@filters
def test_page(client: Client, status: str | None) -> None:
    """A page is an array of at most 20 animals in ascending order of id, all with the status that was asked for."""
    pets = client.list(status=status).json()
    ids = [pet["id"] for pet in pets]
    assert len(pets) <= 20
    assert ids == sorted(set(ids))
    assert all(status in (None, pet.get("status")) for pet in pets)


@pytest.mark.usefixtures("seeded_pets")
@pytest.mark.parametrize("limit", [None, 1, 2, 19, 21, 99, 100])
def test_limit(client: Client, limit: int | None) -> None:
    """A list with more animals than the limit (20 unless given) is answered with exactly as many, and a link."""
    response = client.list(limit=limit)
    assert len(response.json()) == (limit or 20)
    assert next_url(response) is not None
