"""Following a list to its end: links (RFC 8288), cursors, and lists that grow while they are read."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from urllib.parse import quote

import httpx
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.contract.client import Client, Pet, assert_error, eventually, next_url, with_limit
from tests.contract.seeded_pets import FILTERS, SeededPets, filters


@contextmanager
def others_creating(client: Client) -> Iterator[list[Pet]]:
    """Add animals of every kind from two threads, as fast as the service takes them, until the block is left."""
    stop, created = Event(), []

    def create(offset: int) -> None:
        for number in range(offset, 200):  # an end, whatever happens to the block
            if stop.is_set():
                return
            created.append(client.create(status=FILTERS[number % len(FILTERS)]))

    with ThreadPoolExecutor(2) as pool:
        creating = pool.map(create, (0, 2))
        try:
            eventually(lambda: created)  # a short list is read before one is made
            yield created
        finally:
            stop.set()
        list(creating)  # raises what went wrong there


@filters
@pytest.mark.parametrize("limit", [1, 7, 100])
def test_every_page_size(seeded_pets: SeededPets, status: str | None, limit: int) -> None:
    """Whatever the page size, a walk meets each animal of its list once, as it was created, in ascending order."""
    assert seeded_pets.read(status, limit) == seeded_pets.with_status(status)


@filters
def test_page_size_changes_on_the_way(
    client: Client, seeded_pets: SeededPets, status: str | None
) -> None:
    """A cursor may be followed with another limit than it was given with; nothing is missed or repeated."""
    url: str | None = seeded_pets.starts[status]
    found: list[Pet] = []
    for limit in (1, 30, 2, 100, 100):
        if url is not None:
            response = client.request("GET", with_limit(url, limit))
            found += response.json()
            url = next_url(response)
    expected = seeded_pets.with_status(status)
    assert found[: len(expected)] == expected


@filters
def test_list_while_others_create(
    client: Client, seeded_pets: SeededPets, status: str | None
) -> None:
    """A walk while animals are added meets each one that was there before, once, in order."""
    url = with_limit(seeded_pets.starts[status], 10)
    with others_creating(client) as created:
        found = [pet for page in client.pages(url) for pet in page]
    ids, there_before = [pet["id"] for pet in found], seeded_pets.with_status(status)
    by_id = {pet["id"]: pet for pet in created}
    assert ids == sorted(set(ids))
    assert all(status in (None, pet.get("status")) for pet in found)
    assert found[: len(there_before)] == there_before
    assert by_id
    assert all(by_id.get(pet["id"], pet) == pet for pet in found), (
        "an animal is listed other than it was created"
    )


@filters
def test_exactly_full_last_page(
    client: Client, seeded_pets: SeededPets, status: str | None
) -> None:
    """The last page has no link, also when it is full to the last place."""
    url = seeded_pets.starts[status]
    while (following := next_url(client.request("GET", url))) is not None:
        url = following
    count = len(client.request("GET", url).json())
    response = client.request("GET", with_limit(url, count))
    assert len(response.json()) == count
    assert "Link" not in response.headers


@pytest.mark.parametrize("query", ["", "limit=3", "limit=2&status=available", "status=pending"])
@pytest.mark.usefixtures("seeded_pets")
def test_link(client: Client, query: str) -> None:
    """The link has rel="next" alone, leads to where the client came from, keeps limit and filter, and works."""
    response = client.request("GET", f"/pets?{query}")
    assert response.links.keys() == {"next"}
    url = response.links["next"]["url"]
    assert url.startswith(f"{client.base_url}/pets?")
    sent, kept = httpx.QueryParams(query), httpx.URL(url).params
    assert {**kept.remove("cursor")} == {"limit": "20", **sent}
    following = client.request("GET", url)
    assert following.status_code == 200
    assert following.json()[0]["id"] > response.json()[-1]["id"]


@pytest.fixture(scope="module")
def cursors(client: Client, seeded_pets: SeededPets) -> dict[str | None, str]:
    """A genuine cursor for each filter (not for sold animals, of which the stretch has but one)."""
    found = {}
    for status in (None, "available", "pending"):
        url = next_url(client.request("GET", with_limit(seeded_pets.starts[status], 1)))
        found[status] = httpx.URL(url or "").params["cursor"]
    return found


@settings(max_examples=60, derandomize=True)
@given(start=st.integers(0, 40), length=st.integers(0, 40), text=st.text(max_size=8))
@example(start=999, length=0, text="=")
@example(start=999, length=0, text="\n")
@example(start=5, length=0, text=" ")
def test_cursor_refused(
    client: Client, cursors: dict[str | None, str], start: int, length: int, text: str
) -> None:
    """A cursor that was changed at any place is refused, by name."""
    cursor = cursors[None]
    forged = cursor[:start] + text + cursor[start + length :]
    assume(forged != cursor)
    assert_error(
        client.request("GET", f"/pets?cursor={quote(forged)}"), "invalid_request", naming="cursor"
    )


@filters
def test_cursor_of_another_filter(
    client: Client, cursors: dict[str | None, str], status: str | None
) -> None:
    """A cursor belongs to the filter that it was given for."""
    for given_for, cursor in cursors.items():
        response = client.list(cursor=cursor, status=status)
        if given_for == status:
            assert response.status_code == 200
        else:
            assert_error(response, "invalid_request", naming="cursor")
