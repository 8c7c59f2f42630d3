"""A known stretch of the list: animals that one test run created one after the other, and where each list reaches them.

The store may hold any number of others, before them and after them.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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


def make(client: Client) -> SeededPets:
    """Create more animals than the largest page holds: one sold, the others available, pending or without a status."""
    statuses = [
        "sold" if number == 50 else (None, "available", "pending")[number % 3]
        for number in range(105)
    ]
    with ThreadPoolExecutor(4) as pool:
        pets = sorted(
            pool.map(lambda status: client.create(status=status), statuses), key=itemgetter("id")
        )
    made = SeededPets(
        client, pets, {status: _start(client, status, pets[0]["id"]) for status in FILTERS}
    )
    # The filtered lists may come a moment later; from here on no test has to wait for these animals.
    eventually(lambda: all(made.read(status) == made.with_status(status) for status in FILTERS))
    return made


def _start(client: Client, status: str | None, first: int) -> str:
    """Find the URL of the page that begins with a list's first animal from this id on."""
    url = f"/pets?limit=100&status={status}" if status else "/pets?limit=100"
    while before := [pet for pet in client.request("GET", url).json() if pet["id"] < first]:
        url = _after(client, with_limit(url, len(before)))
    return url


def _after(client: Client, url: str) -> str:
    """Find the URL of the page that follows another, as soon as there is one."""
    following = eventually(lambda: next_url(client.request("GET", url)))
    assert following is not None, f"no page follows {url}"
    return with_limit(following, 100)
