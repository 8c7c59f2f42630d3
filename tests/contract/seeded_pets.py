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
FILTERS: dict[str | None, str] = {None: ""}
FILTERS |= {status: f"&status={status}" for status in STATUSES}

filters = pytest.mark.parametrize("status", FILTERS)
"""Runs a test with each filter and with none."""


@dataclass(frozen=True)
class SeededPets:
    """The animals by ascending id, and the URL of the page before which each list has none."""

    client: Client
    pets: list[Pet]
    starts: dict[str | None, str]

    def walk(self, status: str | None = None, limit: int = LARGEST) -> Iterator[Pet]:
        """Follow a list from the first of these animals to its end."""
        for pet in self.client.walk(with_limit(self.starts[status], limit)):
            if pet["id"] >= self.pets[0]["id"]:
                yield pet

    def are_listed(self, status: str | None, limit: int = LARGEST) -> bool:
        """Return whether a list holds those that it should, each once, in order."""
        pets = [pet for pet in self.pets if status in (None, pet.get("status"))]
        return list(islice(self.walk(status, limit), len(pets))) == pets


def make(client: Client) -> SeededPets:
    """Create more animals than the largest page holds, one of them with the last status."""
    starts = {}
    for status, query in FILTERS.items():
        following = f"/pets?limit={LARGEST}{query}"
        while following:
            starts[status] = following
            _, following = client.page(following)
    *others, rare = STATUSES
    members = [{}, *({"status": status} for status in others)]
    members *= LARGEST // len(members) + 2
    pets = [client.create(**each) for each in [*members, {"status": rare}]]
    seeded = SeededPets(client, pets, starts)
    for status in FILTERS:
        # Filtered lists lag behind; from here on no test has to wait for these animals.
        eventually(seeded.are_listed, status)
    return seeded
