"""Following a list to its end: links (RFC 8288) and cursors."""

import httpx2
import pytest

from tests.contract.client import Client, assert_error, with_limit
from tests.contract.seeded_pets import LARGEST, SeededPets, filters
from tests.support.openapi import LIMIT, STATUSES


@filters
@pytest.mark.parametrize("limit", [1, 7, LARGEST])
def test_every_page_size(
    seeded_pets: SeededPets, status: str | None, limit: int
) -> None:
    """Whatever the page size, a walk meets each animal of its list once, in ascending order."""
    assert seeded_pets.are_listed(status, limit)


@filters
def test_full_last_page(
    client: Client, seeded_pets: SeededPets, status: str | None
) -> None:
    """The last page has no link, also when it is full."""
    following = seeded_pets.starts[status]
    while following:
        url = following
        last_page, following = client.page(url)
    assert client.page(with_limit(url, len(last_page))) == (last_page, "")


@pytest.mark.usefixtures("seeded_pets")
@pytest.mark.parametrize(
    ("query", "limit", "kept"),
    [
        ("", LIMIT["default"], ""),
        # Names and values are percent-decoded.
        (f"%73tatus={STATUSES[0]}&limit=%32&&", 2, f"&status={STATUSES[0]}"),
    ],
)
def test_link(client: Client, query: str, limit: int, kept: str) -> None:
    """A full page links to the next one where the client came from, with limit and filter."""
    pets, url = client.page("/pets?" + query)
    assert len(pets) == limit
    assert url.startswith(f"{client.base_url}/pets?limit={limit}{kept}&cursor=")
    following, _ = client.page(url)
    assert following[0]["id"] > pets[-1]["id"]


def test_other_cursors_refused(client: Client, seeded_pets: SeededPets) -> None:
    """A cursor with a change at any place, anything around it or another filter is refused."""
    _, url = client.page(with_limit(seeded_pets.starts[None], 1))
    cursor = httpx2.URL(url).params["cursor"]
    others = [
        f"{cursor}=",
        f"{cursor}%0A",
        f"%20{cursor}",
        f"{cursor}A",
        f"{cursor}%00",
    ]
    others.append(f"{cursor}&status={STATUSES[0]}")
    for position, character in enumerate(cursor):
        other = "B" if character == "A" else "A"
        others.append(cursor[:position] + other + cursor[position + 1 :])
    for each in others:
        response = client.list(f"cursor={each}")
        assert_error(response, "invalid_request", naming="cursor")
