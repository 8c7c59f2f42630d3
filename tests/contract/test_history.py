"""A history of concurrent requests, recorded and then checked as a whole."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from tests.contract.client import Client, Pet
from tests.contract.seeded_pets import LARGEST, SeededPets
from tests.support.openapi import STATUSES

Walk = tuple[float, list[Pet]]
"""When the list was asked for, and its animals from the seeded ones on."""


class Creation(NamedTuple):
    """An animal that was acknowledged. No other has its name, so a name stands for a key."""

    new: Pet
    pet: Pet
    replayed: bool
    end: float


def record(
    client: Client, seeded_pets: SeededPets, rounds: int
) -> tuple[list[Creation], list[Walk]]:
    """Let creations, retries of them at once and later, and lists race."""

    def create(new: Pet) -> Creation:
        # What has a status is sent without a key.
        headers = [] if "status" in new else [("Idempotency-Key", new["name"][-32:])]
        response = client.post(new, *headers)
        pet, replayed = response.json(), "Idempotency-Replayed" in response.headers
        end = time.monotonic()
        return Creation(new, pet, replayed, end)

    def walk(limit: int) -> Walk:
        return time.monotonic(), list(seeded_pets.walk(limit=limit))

    creations: list[Creation] = []
    walks: list[Walk] = []
    keyed = [client.new() for _ in range(rounds)]
    with ThreadPoolExecutor(7) as pool:
        for number, new in enumerate(keyed):
            news = [new, client.new(status=STATUSES[0]), new, keyed[number // 2]]
            created = pool.map(create, news)
            walks += pool.map(walk, [20, 30, LARGEST])
            creations += created
    return creations, [*walks, walk(LARGEST)]


@pytest.mark.parametrize("rounds", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_history(client: Client, seeded_pets: SeededPets, rounds: int) -> None:
    """What was acknowledged is there from then on, as it was sent, once, and in order."""
    creations, walks = record(client, seeded_pets, rounds)

    ids = {new["name"]: pet["id"] for new, pet, _, _ in creations}
    for new, pet, _, _ in creations:
        assert pet == {"id": ids[new["name"]], **new}, "a key made two animals"
    assert len(set(ids.values())) == len(ids), "an id was given twice"
    first = [creation for creation in creations if not creation.replayed]
    assert len(first) == len(ids), "not one request of each key was the first"
    for start, pets in walks:
        assert pets[: len(seeded_pets.pets)] == seeded_pets.pets
        numbers = [pet["id"] for pet in pets]
        assert numbers == sorted(set(numbers)), "a list is not in order"
        for new, pet, _, end in creations:
            listed = [each for each in pets if each["name"] == new["name"]]
            assert listed == [pet] or (listed == [] and end > start)
