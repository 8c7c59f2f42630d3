"""A known stretch of the list: animals of this test run, and where each list reaches them.

The store may hold any number of others, before them and after them.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter

import pytest

from tests.contract.client import Client, Pet, eventually, next_url, with_limit

STATUSES = ("available", "pending", "sold")
FILTERS = (None, *STATUSES)

filters = pytest.mark.parametrize("status", FILTERS, ids=["none", *STATUSES])
"""Runs a test with each filter and with none."""


@dataclass(frozen=True)
class SeededPets:
    """The animals by ascending id, and the URL of the page that each list has them on."""

    client: Client
    pets: Sequence[Pet]
    starts: dict[str | None, str]

    def with_status(self, status: str | None) -> list[Pet]:
        """Return those that the list with this filter holds."""
        return [pet for pet in self.pets if status in (None, pet.get("status"))]

    def walk(self, status: str | None = None, limit: int = 100) -> Iterator[Pet]:
        """Follow a list from the first of these animals to its end."""
        for page in self.client.pages(with_limit(self.starts[status], limit)):
            yield from page

    def read(self, status: str | None, limit: int = 100) -> list[Pet]:
        """Return as many animals of a list as it should hold of these."""
        return list(islice(self.walk(status, limit), len(self.with_status(status))))


def make(client: Client) -> SeededPets:
    """Create more animals than the largest page holds, one of them sold."""
    # Walks begin behind these: with a cursor that was given with another limit.
    for name in STATUSES:
        client.create(status=name)
    statuses = [None, "available", "pending"] * 35
    statuses[50] = "sold"
    with ThreadPoolExecutor(4) as pool:
        created = list(pool.map(lambda status: client.create(status=status), statuses))
    pets = sorted(created, key=itemgetter("id"))
    starts = {status: _start(client, status, pets[0]["id"]) for status in FILTERS}
    made = SeededPets(client, pets, starts)
    # Filtered lists lag behind; from here on no test has to wait for these animals.
    for status in FILTERS:
        _wait_for(made, status)
    return made


def _wait_for(made: SeededPets, status: str | None) -> None:
    eventually(lambda: made.read(status) == made.with_status(status))


def _start(client: Client, status: str | None, first: int) -> str:
    """Return the URL of the page that begins with a list's first animal from this id on."""
    url = "/pets?limit=100"
    if status:
        url += "&status=" + status
    while before := [
        pet for pet in client.request("GET", url).json() if pet["id"] < first
    ]:
        url = _after(client, with_limit(url, len(before)))
    return url


def _after(client: Client, url: str) -> str:
    """Return the URL of the page that follows another, as soon as there is one."""
    following = eventually(lambda: next_url(client.request("GET", url)))
    assert following, url
    return with_limit(following, 100)
