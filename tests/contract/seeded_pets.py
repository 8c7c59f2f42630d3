"""A known stretch of the list: animals of this test run, and where each list reaches them.

The store may hold any number of others, before them and after them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import pytest

from tests.contract.client import Client, Pet, eventually, with_limit
from tests.support.openapi import LIMIT, STATUSES

LARGEST = LIMIT["maximum"]
FILTERS = (None, *STATUSES)

filters = pytest.mark.parametrize("status", FILTERS)
"""Runs a test with each filter and with none."""


@dataclass(frozen=True)
class SeededPets:
    """The animals by ascending id, and the URL of the page that each list has them on."""

    client: Client
    pets: list[Pet]
    starts: dict[str | None, str]

    def walk(self, status: str | None = None, limit: int = LARGEST) -> Iterator[Pet]:
        """Follow a list from the first of these animals to its end."""
        return self.client.walk(with_limit(self.starts[status], limit))

    def are_listed(self, status: str | None, limit: int = LARGEST) -> bool:
        """Return whether a list holds those that it should, each once, in order."""
        pets = [pet for pet in self.pets if status in (None, pet.get("status"))]
        return list(islice(self.walk(status, limit), len(pets))) == pets


def make(client: Client) -> SeededPets:
    """Create more animals than the largest page holds, one of them with the last status."""
    # Walks begin behind these: with a cursor that was given with another limit.
    for status in STATUSES:
        client.create(status=status)
    *others, rare = STATUSES
    members = [{}, *({"status": status} for status in others)]
    members *= LARGEST // len(members) + 2
    pets = [client.create(**each) for each in [*members, {"status": rare}]]
    seeded = SeededPets(client, pets, {})
    for each in FILTERS:
        seeded.starts[each] = _start(client, each, pets[0]["id"])
        # Filtered lists lag behind; from here on no test has to wait for these animals.
        eventually(seeded.are_listed, each)
    return seeded


def _start(client: Client, status: str | None, first: int) -> str:
    """Return the URL of the page that begins with a list's first animal from this id on."""
    url = f"/pets?limit={LARGEST}" + (f"&status={status}" if status else "")
    while True:
        pets = client.request("GET", url).json()
        before = [pet for pet in pets if pet["id"] < first]
        if not before:
            return url
        following = eventually(client.next, with_limit(url, len(before)))
        url = with_limit(following, LARGEST)
