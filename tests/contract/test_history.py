"""Concurrent requests: creations, retries of them at once and later, and lists that race."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.contract.client import Client, Pet
from tests.contract.seeded_pets import LARGEST, SeededPets
from tests.support.openapi import STATUSES


@pytest.mark.parametrize("rounds", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_history(client: Client, seeded_pets: SeededPets, rounds: int) -> None:
    """What was acknowledged is there from then on, as it was sent, once, and in order."""
    acknowledged: dict[str, Pet] = {}
    first = []

    def create(new: Pet) -> None:
        # What has a status is sent without a key.
        headers = [] if "status" in new else [("Idempotency-Key", new["name"][-32:])]
        response = client.post(new, *headers)
        pet = response.json()
        assert pet == {"id": pet["id"], **new}
        assert acknowledged.setdefault(new["name"], pet) == pet, "a key made two"
        if "Idempotency-Replayed" not in response.headers:
            first.append(new["name"])

    def walk(limit: int) -> list[Pet]:
        before = list(acknowledged.values())
        pets = list(seeded_pets.walk(limit=limit))
        assert pets[: len(seeded_pets.pets)] == seeded_pets.pets
        ids = [pet["id"] for pet in pets]
        assert ids == sorted(set(ids)), "a list is not in order"
        assert all(pet in pets for pet in before), "an acknowledged animal is missing"
        return pets

    keyed = [client.new() for _ in range(rounds)]
    with ThreadPoolExecutor(7) as pool:
        for number, new in enumerate(keyed):
            news = [new, client.new(status=STATUSES[0]), new, keyed[number // 2]]
            created = pool.map(create, news)
            list(pool.map(walk, [20, 30, LARGEST]))
            list(created)

    added = [pet for pet in walk(LARGEST) if pet["name"] in acknowledged]
    assert len(added) == len(acknowledged), "an animal was added twice"
    assert sorted(first) == sorted(acknowledged), (
        "not one request of each was the first"
    )
