"""A known stretch of the list: animals that one test run created one after the other, and where each list reaches them.

The store may hold any number of others, before them and after them.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

import pytest

from tests.contract.client import Client, Pet, eventually, next_url, with_limit

STATUSES = ("available", "pending", "sold")
FILTERS = (None, *STATUSES)

filters = pytest.mark.parametrize("status", FILTERS, ids=[status or "none" for status in FILTERS])
"""Runs a test with each filter and with none."""


@dataclass(frozen=True)
class SeededPets:
    """The animals in order of their ids, and for each filter the URL of the page that begins with the first of them."""

    client: Client
    pets: Sequence[Pet]
    starts: dict[str | None, str]

    def with_status(self, status: str | None) -> Sequence[Pet]:
        """Return those that the list with this filter holds."""
        return [pet for pet in self.pets if status in (None, pet.get("status"))]

    def onwards(self, status: str | None = None) -> Sequence[Pet]:
        """Follow a list from the first of these animals to its end."""
        return [pet for page in self.client.pages(self.starts[status]) for pet in page]

    def read(self, status: str | None, limit: int = 100) -> Sequence[Pet]:
        """Follow a list until these animals are over, and return those of them that it holds."""
        found: list[Pet] = []
        for page in self.client.pages(with_limit(self.starts[status], limit)):
            found += [pet for pet in page if self.pets[0]["id"] <= pet["id"] <= self.pets[-1]["id"]]
            if page and page[-1]["id"] >= self.pets[-1]["id"]:
                break
        return found

    def is_listed(self, status: str | None) -> bool:
        """Tell whether the list with this filter holds the animals that it should."""
        return self.read(status) == self.with_status(status)


def make(client: Client) -> SeededPets:
    """Create more animals than the largest page holds: one sold, the others available, pending or without a status."""
    tails = {status: _tail(client, status) for status in FILTERS}
    statuses = ["sold" if number == 50 else (None, "available", "pending")[number % 3] for number in range(105)]
    with ThreadPoolExecutor(4) as pool:
        pets = sorted(pool.map(lambda status: client.create(status=status), statuses), key=itemgetter("id"))
    seeded_pets = SeededPets(client, pets, {status: _after(client, *tail) for status, tail in tails.items()})
    for status in FILTERS:
        # The filtered lists may come a moment later; from here on no test has to wait for these animals.
        eventually(partial(seeded_pets.is_listed, status))
    return seeded_pets


def _tail(client: Client, status: str | None) -> tuple[str, int]:
    """Find the last page of a list: its URL and how many animals it holds."""
    url: str | None = f"/pets?limit=100&status={status}" if status else "/pets?limit=100"
    while url is not None:
        tail, response = url, client.request("GET", url)
        url = next_url(response)
    return tail, len(response.json())


def _after(client: Client, tail: str, count: int) -> str:
    """Find the URL that leads on after so many animals of a page, once more have been added."""
    if count == 0:
        return tail
    url = eventually(lambda: next_url(client.request("GET", with_limit(tail, count))))
    assert url is not None, f"no page follows {tail}"
    return with_limit(url, 100)
