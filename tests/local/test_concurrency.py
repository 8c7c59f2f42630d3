"""Many clients at once, over HTTP, on a real store: what single-threaded tests can not show."""

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from tests.contract.client import Client, pet_of
from tests.processes import RunningService

CLIENTS = 32
CREATIONS = 50


@pytest.fixture
def client(service: RunningService) -> Iterator[Client]:
    with Client(service.base_url, service.api_key) as client:
        yield client


def test_every_creation_counts(client: Client) -> None:
    """32 clients with 50 creations each get 1,600 different ids; every animal can be read and is listed once."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        created = list(pool.map(lambda number: client.create(categoryId=number), range(CLIENTS * CREATIONS)))
        assert len({pet["id"] for pet in created}) == CLIENTS * CREATIONS
        read = list(pool.map(lambda pet: pet_of(client.get(pet["id"])), created))
    assert read == created

    listed = [pet for page in client.pages("/pets?limit=100") for pet in page]
    assert all(one["id"] < other["id"] for one, other in pairwise(listed))
    by_id = {pet["id"]: pet for pet in listed}
    assert [by_id.get(pet["id"]) for pet in created] == created


@pytest.mark.parametrize("round_", range(3))
def test_raced_idempotency_key(client: Client, round_: int) -> None:
    """16 clients that send the same creation with the same key at the same moment add one animal, and all get it."""
    racers = 16
    new, key, start = client.new(categoryId=round_), str(uuid.uuid4()), threading.Barrier(racers)

    def race(_: int) -> tuple[int, str, str | None]:
        start.wait(timeout=30)
        response = client.post(new, ("Idempotency-Key", key))
        return response.status_code, response.text, response.headers.get("Idempotency-Replayed")

    with ThreadPoolExecutor(racers) as pool:
        answers = list(pool.map(race, range(racers)))
    statuses, bodies, replays = zip(*answers, strict=True)
    assert set(statuses) == {201}
    assert len(set(bodies)) == 1
    assert replays.count(None) == 1
    listed = [pet for page in client.pages("/pets?limit=100") for pet in page if pet["name"] == new["name"]]
    assert len(listed) == 1
