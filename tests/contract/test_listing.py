"""listPets: parameters and their limits, pages, links (RFC 8288) and cursors."""

import pytest
from httpx2 import URL, Client
from jsonschema import Draft202012Validator

from tests.contract.client import assert_error
from tests.contract.seeded_pets import LARGEST, SeededPets, filters
from tests.support.openapi import LIMIT, PARAMETERS, STATUSES
from tests.support.waiting import wait_for

FIRST, *_, LAST = STATUSES
DOCUMENTED = Draft202012Validator(PARAMETERS["Cursor"]["schema"])

# Percent-encoded.
REFUSED = f"""
limit=0 limit=-1 limit={LARGEST + 1} limit= limit=abc limit=1.0 limit=1_0
limit=%2531 limit=%2B5 limit=%205 limit=5%0A limit=%D9%A5 limit=%FF
limit=5&status={FIRST}&limit=5 limit=&limit=5
status=unknown status={FIRST.upper()} status= status={FIRST},{LAST} status={FIRST}%0A
status=%25{ord(FIRST[0]):x}{FIRST[1:]} status=%FF status={FIRST}&status={LAST}
cursor= cursor=1 cursor=%FF cursor={"A" * 24} cursor={"x" * 4000}
""".split()
NAMED = [
    *((query, query.partition("=")[0]) for query in REFUSED),
    # Parameters that the interface does not have; case counts.
    (f"stauts={FIRST}", "stauts"),
    ("page=2&limit=5", "page"),
    ("Limit=5", "Limit"),
    ("limit%5B%5D=5", "limit[]"),
    ("%6Cimit=5&c%6Flour=red", "colour"),
    ("x" * 4000, "xxx"),
]


@pytest.mark.smoke_read_only
@pytest.mark.parametrize(("query", "name"), NAMED)
def test_parameter_refused(client: Client, query: str, name: str) -> None:
    """An unknown parameter, a value that is not allowed, or a second one is refused, by name."""
    assert_error(client.get("/pets?" + query), "invalid_request", naming=name)


@pytest.mark.smoke_read_only
@filters
def test_page(client: Client, status: str) -> None:
    """A page has animals by ascending id, all with the status that was asked for."""
    pets = client.get(f"/pets?status={status}" if status else "/pets").json()
    ids = [pet["id"] for pet in pets]
    assert len(ids) <= LIMIT["default"]
    assert ids == sorted(set(ids))
    assert not status or {pet["status"] for pet in pets} <= {status}


@filters
@pytest.mark.parametrize("limit", [1, 7, LARGEST])
def test_every_page_size(seeded_pets: SeededPets, status: str, limit: int) -> None:
    """Whatever the page size, a list has each of its animals once, in ascending order."""
    own = [pet for pet in seeded_pets.pets if status in ("", pet.get("status"))]
    # Filtered lists lag behind.
    wait_for(lambda: seeded_pets.listed(status, limit)[: len(own)] == own, 3)


@pytest.mark.usefixtures("seeded_pets")
@pytest.mark.parametrize(
    ("query", "limit", "kept"),
    [
        ("", LIMIT["default"], ""),
        # Names and values are percent-decoded.
        (f"%73tatus={FIRST}&limit=%32&&", 2, f"&status={FIRST}"),
    ],
)
def test_link(client: Client, query: str, limit: int, kept: str) -> None:
    """A full page links to the next one where the client came from, with limit and filter."""
    page = client.get("/pets?" + query)
    assert len(page.json()) == limit
    url = page.links["next"]["url"]
    assert url.startswith(f"{client.base_url}pets?limit={limit}{kept}&cursor=")
    assert DOCUMENTED.is_valid(URL(url).params["cursor"])


@pytest.mark.usefixtures("seeded_pets")
def test_other_cursors_refused(client: Client) -> None:
    """A cursor with a change at any place, anything around it or another filter is refused."""
    page = client.get("/pets?limit=1")
    cursor = URL(page.links["next"]["url"]).params["cursor"]
    others = [f"{cursor}%0A", f"%20{cursor}", f"{cursor}A", f"{cursor}&status={FIRST}"]
    for position, character in enumerate(cursor):
        other = "B" if character == "A" else "A"
        others.append(cursor[:position] + other + cursor[position + 1 :])
    for each in others:
        response = client.get(f"/pets?cursor={each}")
        assert_error(response, "invalid_request", naming="cursor")
