"""A history of concurrent requests, recorded and then checked as a whole."""

import time
import uuid
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
    """A list that was followed from the seeded animals to its end."""

    start: float
    status: str | None
    pets: list[Pet]


def record(
    client: Client, seeded_pets: SeededPets, rounds: int
) -> tuple[list[Creation], list[Walk]]:
    """Let creations, retries of them at once and later, reads and lists race."""

    def create(new: Pet, *headers: tuple[str, str]) -> Creation:
        response = client.post(new, *headers)
        pet, replayed = response.json(), "Idempotency-Replayed" in response.headers
        end = time.monotonic()
        assert client.get(pet["id"]).json() == pet
        return Creation(new, pet, replayed, end)

    def walk(status: str | None) -> Walk:
        start = time.monotonic()
        return Walk(start, status, list(seeded_pets.walk(status, limit=20)))

    creations: list[Creation] = []
    walks: list[Walk] = []
    keyed = [
        (client.new(), ("Idempotency-Key", str(uuid.uuid4()))) for _ in range(rounds)
    ]
    with ThreadPoolExecutor(7) as pool:
        for number, new in enumerate(keyed):
            pending = [
                pool.submit(create, *new),
                pool.submit(create, client.new(status="sold")),
                pool.submit(create, *new),
                pool.submit(create, *keyed[number // 2]),
            ]
            walks += pool.map(walk, [None, "sold", None])
            creations += [creation.result() for creation in pending]
    return creations, [*walks, walk(None)]


def check_walk(walk: Walk, seeded: list[Pet], creations: list[Creation]) -> None:
    """Assert that a list is in order, and has what was there before it, each animal once."""
    ids = [pet["id"] for pet in walk.pets]
    assert ids == sorted(set(ids)), "a list is not in order"
    assert walk.pets[: len(seeded)] == seeded, "an old animal is not listed"
    names = [pet["name"] for pet in walk.pets]
    for new, pet, _, end in creations:
        assert names.count(new["name"]) <= 1, "a key made two animals"
        if end < walk.start and walk.status is None:  # a filtered list may lag behind
            assert pet in walk.pets, "an acknowledged animal is not listed"


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
        check_walk(walk, seeded_pets.with_status(walk.status), creations)
