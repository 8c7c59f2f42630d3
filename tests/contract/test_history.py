"""A history of concurrent requests, recorded and then checked as a whole."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.contract.client import Client, Pet
from tests.contract.seeded_pets import SeededPets

ROUNDS = 12
SECONDS = 8  # where a round takes long, there are fewer


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
    client: Client, seeded_pets: SeededPets
) -> tuple[list[Creation], list[Walk]]:
    """Let creations, retries of them at once and later, reads and lists race."""
    creations: list[Creation] = []
    walks: list[Walk] = []

    def create(new: Pet, *headers: tuple[str, str]) -> None:
        response = client.post(new, *headers)
        assert response.status_code == 201, response.text
        pet, replayed = response.json(), "Idempotency-Replayed" in response.headers
        creations.append(Creation(new, pet, replayed, time.monotonic()))
        assert client.get(pet["id"]).json() == pet

    def walk(status: str | None) -> None:
        start = time.monotonic()
        walks.append(Walk(start, status, list(seeded_pets.walk(status, limit=20))))

    deadline = time.monotonic() + SECONDS
    keyed = [
        (client.new(), ("Idempotency-Key", str(uuid.uuid4()))) for _ in range(ROUNDS)
    ]
    with ThreadPoolExecutor(7) as pool:
        for number, (new, key) in enumerate(keyed):
            requests = [
                pool.submit(create, new, key),
                pool.submit(create, client.new(status="sold")),
                pool.submit(walk, None),
                pool.submit(create, new, key),
                pool.submit(walk, "sold"),
                pool.submit(create, *keyed[number // 2]),
                pool.submit(walk, None),
            ]
            for request in requests:
                request.result()
            if time.monotonic() > deadline:
                break
    walk(None)
    return creations, walks


def check_creations(creations: list[Creation]) -> None:
    """Assert that ids are unique, and that a key made one animal, as it was sent."""
    ids: dict[str, int] = {}
    for new, pet, _, _ in creations:
        assert pet == {"id": pet["id"], **new}
        assert ids.setdefault(pet["name"], pet["id"]) == pet["id"], (
            "a key made two animals"
        )
    assert len(set(ids.values())) == len(ids), "an id was given twice"
    first = [creation for creation in creations if not creation.replayed]
    assert len(first) == len(ids), "not one request of each key was the first"


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


def test_history(client: Client, seeded_pets: SeededPets) -> None:
    """What was acknowledged is there from then on, as it was sent, once, and in order."""
    creations, walks = record(client, seeded_pets)
    check_creations(creations)
    for walk in walks:
        check_walk(walk, seeded_pets.with_status(walk.status), creations)
