"""Following a list to its end: links (RFC 8288), cursors, and lists that grow while they are read."""

import base64
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.client import Client, Pet, assert_error, next_url, pets_of, with_limit
from tests.contract.seeded_pets import FILTERS, STATUSES, SeededPets, filters


@contextmanager
def others_creating(client: Client) -> Iterator[list[Pet]]:
    """Add animals of every kind from two threads, as fast as the service takes them, until the block is left."""
    stop, created = threading.Event(), []

    def create(offset: int) -> None:
        for number in range(offset, 200):  # an end, whatever happens to the block
            if stop.is_set():
                return
            status = FILTERS[number % len(FILTERS)]
            created.append(client.create(**({"status": status} if status else {})))

    threads = [threading.Thread(target=create, args=(offset,)) for offset in (0, 2)]
    for thread in threads:
        thread.start()
    try:
        while not created and any(thread.is_alive() for thread in threads):  # a short list is read before one is made
            time.sleep(0.01)
        yield created
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@filters
@pytest.mark.parametrize("limit", [1, 2, 7, 20, 52, 99, 100])
def test_every_page_size(client: Client, seeded_pets: SeededPets, status: str | None, limit: int) -> None:
    """Whatever the page size, a walk meets each animal of its list once, as it was created, in ascending order."""
    url = with_limit(seeded_pets.starts[status], limit)
    assert seeded_pets.read(client, url) == seeded_pets.with_status(status)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(data=st.data())
def test_page_size_changes_on_the_way(client: Client, seeded_pets: SeededPets, data: st.DataObject) -> None:
    """A cursor may be followed with another limit than it was given with; nothing is missed or repeated."""
    status = data.draw(st.sampled_from(FILTERS), label="status")
    url: str | None = seeded_pets.starts[status]
    found: list[Pet] = []
    while url is not None and (not found or found[-1]["id"] < seeded_pets.pets[-1]["id"]):
        response = client.request("GET", with_limit(url, data.draw(st.integers(1, 100), label="limit")))
        found += pets_of(response)
        url = next_url(response)
    expected = seeded_pets.with_status(status)
    assert found[: len(expected)] == expected


@filters
def test_every_page_size_while_others_create(client: Client, seeded_pets: SeededPets, status: str | None) -> None:
    """The same while animals are added behind those that the walk has to meet."""
    with others_creating(client) as created:
        walks = [seeded_pets.read(client, with_limit(seeded_pets.starts[status], limit)) for limit in (3, 10, 51)]
    assert created
    assert walks == [seeded_pets.with_status(status)] * len(walks)


@filters
def test_list_while_others_create(client: Client, seeded_pets: SeededPets, status: str | None) -> None:
    """A walk through the whole store while animals are added meets each one that was there before, once, in order."""
    with others_creating(client) as created:
        found = [
            pet for page in client.pages("/pets?limit=100" + (f"&status={status}" if status else "")) for pet in page
        ]
    ids = [pet["id"] for pet in found]
    assert created
    assert ids == sorted(set(ids))
    assert all(status in (None, pet.get("status")) for pet in found)
    there_before = [pet for pet in found if seeded_pets.pets[0]["id"] <= pet["id"] <= seeded_pets.pets[-1]["id"]]
    assert there_before == seeded_pets.with_status(status)
    by_id = {pet["id"]: pet for pet in created}
    assert all(by_id.get(pet["id"], pet) == pet for pet in found), "an animal is listed other than it was created"


def test_walk_ends_at_newest(client: Client, seeded_pets: SeededPets) -> None:
    """An animal that was created is listed at once, behind all that were created before it."""
    pet = client.create()
    listed = [pet for page in client.pages(seeded_pets.starts[None]) for pet in page]
    assert pet in listed
    assert listed == sorted(listed, key=itemgetter("id"))


def test_filters_divide_list(client: Client, seeded_pets: SeededPets) -> None:
    """Each animal is in the list of its own status and no other; one without a status is in the whole list alone."""
    whole = seeded_pets.read(client, seeded_pets.starts[None])
    for status in STATUSES:
        expected = [pet for pet in whole if pet.get("status") == status]
        assert seeded_pets.read(client, seeded_pets.starts[status]) == expected
    assert any("status" not in pet for pet in whole)


def test_rare_status(client: Client, seeded_pets: SeededPets) -> None:
    """One sold animal among a hundred others is on the first page, however small: the limit counts matches."""
    (sold,) = seeded_pets.with_status("sold")
    url = with_limit(seeded_pets.starts["sold"], 1)
    assert pets_of(client.request("GET", url)) == [sold]


@filters
def test_exactly_full_last_page(client: Client, seeded_pets: SeededPets, status: str | None) -> None:
    """The last page has no link, also when it is full to the last place."""
    url = seeded_pets.starts[status]
    while (following := next_url(client.request("GET", url))) is not None:
        url = following
    count = len(pets_of(client.request("GET", url)))
    response = client.request("GET", with_limit(url, count))
    assert len(pets_of(response)) == count
    assert "Link" not in response.headers


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        pytest.param("", {}, id="default"),
        pytest.param("limit=3", {"limit": "3"}, id="limit"),
        pytest.param("status=available&limit=2", {"limit": "2", "status": "available"}, id="limit-and-status"),
        pytest.param("status=pending", {"status": "pending"}, id="status"),
        pytest.param("limit=1&colour=red", {"limit": "1"}, id="unknown-parameter"),
    ],
)
@pytest.mark.usefixtures("seeded_pets")
def test_link(client: Client, query: str, kept: dict[str, str]) -> None:
    """The link is absolute, has rel="next" alone, keeps limit and filter, and works as it stands."""
    response = client.request("GET", f"/pets?{query}")
    assert response.links.keys() == {"next"}
    assert response.headers["Link"].endswith('>; rel="next"')
    url = httpx.URL(response.links["next"]["url"])
    assert url.is_absolute_url
    assert url.params["cursor"]
    assert kept.items() <= dict(url.params).items()
    assert dict(url.params).keys() <= {"limit", "status", "cursor"}
    following = client.request("GET", str(url))
    assert following.status_code == 200
    assert pets_of(following)[0]["id"] > pets_of(response)[-1]["id"]


@pytest.mark.usefixtures("seeded_pets")
def test_link_stays_at_base_url(client: Client) -> None:
    """The link leads to where the client came from: same scheme, host, port and base path."""
    url = next_url(client.list(limit=1))
    assert url is not None
    assert url.startswith(f"{client.base_url}/pets?")


def test_cursor_is_stable(client: Client, seeded_pets: SeededPets) -> None:
    """The same page asked for twice is answered the same: a read changes nothing."""
    first, second = (client.request("GET", with_limit(seeded_pets.starts[None], 50)) for _ in range(2))
    assert pets_of(first) == pets_of(second)
    assert first.headers["Link"] == second.headers["Link"]


def changed(text: str, position: int) -> str:
    """Replace one character by another of the same alphabet."""
    replacement = "A" if text[position] != "A" else "B"
    return text[:position] + replacement + text[position:][1:]


FORGERIES: dict[str, Callable[[str], str]] = {
    "empty": lambda _: "",
    "number": lambda _: "1",
    "word": lambda _: "cursor",
    "json": lambda _: base64.urlsafe_b64encode(b'{"id": 1}').decode(),
    "same-length": lambda cursor: "A" * len(cursor),
    "first-changed": lambda cursor: changed(cursor, 0),
    "middle-changed": lambda cursor: changed(cursor, len(cursor) // 2),
    "last-changed": lambda cursor: changed(cursor, len(cursor) - 1),
    "cut": lambda cursor: cursor[:-1],
    "halved": lambda cursor: cursor[: len(cursor) // 2],
    "prolonged": lambda cursor: cursor + "A",
    "padded": lambda cursor: cursor + "=",
    "doubled": lambda cursor: cursor * 2,
    "other-case": str.swapcase,
    "space-after": lambda cursor: cursor + "%20",
    "space-before": lambda cursor: "%20" + cursor,
    "space-within": lambda cursor: cursor[:5] + "%20" + cursor[5:],
    "line-feed-after": lambda cursor: cursor + "%0A",
    "nul-after": lambda cursor: cursor + "%00",
    "not-ascii": lambda cursor: "%C3%A9" + cursor[2:],
    "invalid-utf-8": lambda cursor: "%FF" + cursor[1:],
    "very-long": lambda cursor: cursor * 100,
}


@pytest.fixture(scope="module")
def cursors(client: Client, seeded_pets: SeededPets) -> dict[str | None, str]:
    """A genuine cursor for each filter (after an animal that the seeded_pets has; sold it has but one)."""
    found = {}
    for status in (None, "available", "pending"):
        response = client.request("GET", with_limit(seeded_pets.starts[status], 1))
        found[status] = httpx.URL(response.links["next"]["url"]).params["cursor"]
    return found


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES.keys())
def test_cursor_refused(client: Client, cursors: dict[str | None, str], forgery: Callable[[str], str]) -> None:
    """A cursor that the service did not write is refused, by name."""
    assert_error(client.request("GET", f"/pets?cursor={forgery(cursors[None])}"), "invalid_request", naming="cursor")


@pytest.mark.parametrize(
    ("given_for", "sent_with"),
    [
        pytest.param(None, "available", id="none-available"),
        pytest.param("available", None, id="available-none"),
        pytest.param("available", "pending", id="available-pending"),
        pytest.param("pending", "available", id="pending-available"),
        pytest.param("pending", "sold", id="pending-sold"),
    ],
)
def test_cursor_of_another_filter(
    client: Client, cursors: dict[str | None, str], given_for: str | None, sent_with: str | None
) -> None:
    """A cursor belongs to the filter that it was given for."""
    assert client.list(cursor=cursors[given_for], status=given_for).status_code == 200
    assert_error(client.list(cursor=cursors[given_for], status=sent_with), "invalid_request", naming="cursor")


def test_cursor_twice(client: Client, cursors: dict[str | None, str]) -> None:
    """A genuine cursor that is given twice is refused."""
    cursor = cursors[None]
    assert_error(client.request("GET", f"/pets?cursor={cursor}&cursor={cursor}"), "invalid_request", naming="cursor")
