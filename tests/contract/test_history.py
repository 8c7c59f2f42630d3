"""Concurrent requests: creations, the same ones again, and lists that race with them."""

from concurrent.futures import ThreadPoolExecutor

from tests.contract.client import Client, Pet
from tests.contract.seeded_pets import SeededPets


def test_history(client: Client, seeded_pets: SeededPets) -> None:
    """What was acknowledged is there from then on, as it was sent, once, and in order."""
    news = [client.new() for _ in range(12)]

    def create_and_list(new: Pet) -> Pet:
        key = new["name"][-32:]
        pet: Pet = client.post(new, ("Idempotency-Key", key)).json()
        pets = list(seeded_pets.walk())
        ids = [each["id"] for each in pets]
        assert ids == sorted(set(ids)), "a list is not in order"
        assert pet in pets, "an acknowledged animal is missing"
        return pet

    with ThreadPoolExecutor(6) as pool:
        first = pool.map(create_and_list, news)
        again = pool.map(create_and_list, news)
        created = list(first)
        assert list(again) == created

    names = [new["name"] for new in news]
    added = [pet for pet in seeded_pets.walk() if pet["name"] in names]
    assert len(added) == len(news), "an animal was added twice"
    assert created == [
        {"id": pet["id"], **new} for pet, new in zip(created, news, strict=True)
    ]
