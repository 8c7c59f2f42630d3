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


@pytest.fixture
def cursor(client: Client, seeded_pets: SeededPets) -> str:
    """A genuine cursor of the whole list."""
    _, url = client.page(with_limit(seeded_pets.starts[None], 1))
    return httpx2.URL(url).params["cursor"]


def test_changed_cursor_refused(client: Client, cursor: str) -> None:
    """A cursor that was changed at any place is refused, by name."""
    for position, character in enumerate(cursor):
        other = "B" if character == "A" else "A"
        query = f"cursor={cursor[:position]}{other}{cursor[position + 1 :]}"
        assert_error(client.list(query), "invalid_request", naming="cursor")


@pytest.mark.parametrize(
    "form",
    ["{}=", "{}%0A", "%20{}", "{}A", "{}%00", "{}&status=" + STATUSES[0]],
)
def test_other_use_refused(client: Client, cursor: str, form: str) -> None:
    """A cursor with anything around it, or with another filter than its own, is refused."""
    query = "cursor=" + form.format(cursor)
    assert_error(client.list(query), "invalid_request", naming="cursor")
