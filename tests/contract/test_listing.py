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

# Percent-encoded queries; each message names the first parameter.
REFUSED = [
    "limit=0",
    f"limit={LARGEST + 1}",
    "limit=",
    "limit=1.0",
    "limit=1_0",
    "limit=%2531",
    "limit=%2B5",
    "limit=%205",
    "limit=5%0A",
    "limit=%D9%A5",
    f"limit=5&status={FIRST}&limit=5",
    "status=unknown",
    f"status={FIRST.upper()}",
    "status=",
    f"status={FIRST}%0A",
    f"status={FIRST}&status={LAST}",
    "cursor=",
    "cursor=%FF",
    f"cursor={'A' * 24}",
    f"cursor={'x' * 4000}",
]
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
def test_refused_parameter_is_named(client: Client, query: str, name: str) -> None:
    """It is unknown, is given twice, or has a value that is not allowed."""
    assert_error(client.get("/pets?" + query), "invalid_request", naming=name)


@pytest.mark.smoke_read_only
@filters
def test_page_is_filtered_and_in_order(client: Client, status: str) -> None:
    """A page has animals by ascending id, all with the status that was asked for."""
    pets = client.get(f"/pets?status={status}" if status else "/pets").json()
    ids = [pet["id"] for pet in pets]
    assert len(ids) <= LIMIT["default"]
    assert ids == sorted(set(ids))
    assert not status or {pet["status"] for pet in pets} <= {status}


@filters
@pytest.mark.parametrize("limit", [1, 7, LARGEST])
def test_list_is_the_same_for_each_page_size(
    seeded_pets: SeededPets, status: str, limit: int
) -> None:
    """It has each of its animals once, in ascending order."""
    pets = [pet for pet in seeded_pets.pets if status in ("", pet.get("status"))]
    # Filtered lists lag behind.
    wait_for(lambda: seeded_pets.listed(status, limit)[: len(pets)] == pets, 3)


@pytest.mark.usefixtures("seeded_pets")
@pytest.mark.parametrize(
    ("request_path", "limit", "kept"),
    [
        ("/pets", LIMIT["default"], ""),
        ("/pets/", LIMIT["default"], ""),
        # Names and values are percent-decoded.
        (f"/pets?%73tatus={FIRST}&limit=%32&&", 2, f"&status={FIRST}"),
    ],
)
def test_full_page_links_to_the_next(
    client: Client, request_path: str, limit: int, kept: str
) -> None:
    """The link keeps origin, limit and filter; a slash at the end of the path goes."""
    page = client.get(request_path)
    assert len(page.json()) == limit
    url = page.links["next"]["url"]
    assert url.startswith(f"{client.base_url}pets?limit={limit}{kept}&cursor=")
    assert DOCUMENTED.is_valid(URL(url).params["cursor"])


@pytest.mark.usefixtures("seeded_pets")
def test_changed_cursor_is_refused(client: Client) -> None:
    """Any other character, anything around the cursor and another filter are a change."""
    page = client.get("/pets?limit=1")
    cursor = URL(page.links["next"]["url"]).params["cursor"]
    changed = [f"{cursor}%0A", f"%20{cursor}", f"{cursor}A", f"{cursor}&status={FIRST}"]
    for position, character in enumerate(cursor):
        other = "B" if character == "A" else "A"
        changed.append(cursor[:position] + other + cursor[position + 1 :])
    for each in changed:
        response = client.get(f"/pets?cursor={each}")
        assert_error(response, "invalid_request", naming="cursor")
