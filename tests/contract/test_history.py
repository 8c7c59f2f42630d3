"""A history of concurrent requests, recorded and then checked as a whole."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from tests.contract.client import Client, Pet
from tests.contract.seeded_pets import SeededPets


class Creation(NamedTuple):
    """An animal that was acknowledged. No other has its name, so a name stands for a key."""

    new: Pet
    pet: Pet
    replayed: bool
    end: float


class Walk(NamedTuple):
    """The list as it was followed from the seeded animals to its end."""

    start: float
    pets: list[Pet]


def record(
    client: Client, seeded_pets: SeededPets, rounds: int
) -> tuple[list[Creation], list[Walk]]:
    """Let creations, retries of them at once and later, reads and lists race."""

    def create(new: Pet) -> Creation:
        # What has a status is sent without a key.
        headers = [] if "status" in new else [("Idempotency-Key", new["name"][-32:])]
        response = client.post(new, *headers)
        pet, replayed = response.json(), "Idempotency-Replayed" in response.headers
        end = time.monotonic()
        assert client.get(pet["id"]).json() == pet
        return Creation(new, pet, replayed, end)

    def walk(limit: int) -> Walk:
        return Walk(time.monotonic(), list(seeded_pets.walk(limit=limit)))

    creations: list[Creation] = []
    walks: list[Walk] = []
    keyed = [client.new() for _ in range(rounds)]
    with ThreadPoolExecutor(7) as pool:
        for number, new in enumerate(keyed):
            news = [new, client.new(status="sold"), new, keyed[number // 2]]
            created = pool.map(create, news)
            walks += pool.map(walk, [20, 30, 100])
            creations += created
    return creations, [*walks, walk(100)]


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
    for walk in walks:
        check_walk(walk, seeded_pets.pets, creations)


def check_walk(walk: Walk, seeded: list[Pet], creations: list[Creation]) -> None:
    """Assert that the list is in order, and has what was there before it, each animal once."""
    ids = [pet["id"] for pet in walk.pets]
    assert ids == sorted(set(ids)), "a list is not in order"
    assert walk.pets[: len(seeded)] == seeded, "an old animal is not listed"
    names = [pet["name"] for pet in walk.pets]
    for new, pet, _, end in creations:
        assert names.count(new["name"]) <= 1, "a key made two animals"
        if end < walk.start:
            assert pet in walk.pets, "an acknowledged animal is not listed"
