"""A known stretch of the list: animals of this test run, and where each list reaches them.

The store may hold any number of others, before them and after them.
"""

from dataclasses import dataclass
from functools import cache

import httpx2
import pytest

from tests.contract.client import Pet, create, walk
from tests.support.openapi import LIMIT, STATUSES

LARGEST = LIMIT["maximum"]
QUERIES = {"": "", **{status: f"&status={status}" for status in STATUSES}}

filters = pytest.mark.parametrize("status", QUERIES)
"""Runs a test with each filter and with none."""


@dataclass(frozen=True)
class SeededPets:
    """The animals by ascending id, and for each filter the URL of the page that they begin on."""

    client: httpx2.Client
    pets: list[Pet]
    starts: dict[str, str]

    def listed(self, status: str = "", limit: int = LARGEST) -> list[Pet]:
        """Return what a list holds from the first of these animals on."""
        url = httpx2.URL(self.starts[status]).copy_set_param("limit", limit)
        pets = walk(self.client, str(url))
        return [pet for pet in pets if pet["id"] >= self.pets[0]["id"]]


def last_page(client: httpx2.Client, url: str) -> str:
    """Follow a list to the URL of its last page."""
    while following := client.get(url).links.get("next"):
        url = following["url"]
    return url


@cache
def make(client: httpx2.Client) -> SeededPets:
    """Create more animals than a page holds by default, one of them with the last status."""
    starts = {
        status: last_page(client, f"/pets?limit={LARGEST}{query}")
        for status, query in QUERIES.items()
    }
    *others, rare = STATUSES
    members = [{}, *({"status": status} for status in others)]
    members *= LIMIT["default"] // len(members) + 1
    pets = [create(client, **each) for each in [*members, {"status": rare}]]
    return SeededPets(client, pets, starts)
