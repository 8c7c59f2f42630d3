"""`make run` is killed while clients write: each acknowledged animal is there once."""

import random
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx2
import pytest
from animal_store_client import Client

from tests.support.processes import run_service

KILLS, CLIENTS = 10, 32


def create_until_killed(http: httpx2.Client, ids: dict[str, int], name: str) -> str:
    """Create animals until the service is killed, the first with this name.

    Add the id of each animal to `ids`; return the name whose request got no response.
    """
    while True:
        pet = {"name": name, "categoryId": 1}
        headers = {"Idempotency-Key": name}
        try:
            response = http.post("/pets", headers=headers, json=pet)
        except httpx2.TransportError:
            return name
        ids[name] = response.json()["id"]
        name = uuid.uuid4().hex


@pytest.mark.slow
def test_kill_neither_loses_nor_duplicates_animals(tmp_path: Path) -> None:
    created_ids: dict[str, int] = {}
    unanswered_names = [uuid.uuid4().hex for _ in range(CLIENTS)]
    for _ in range(KILLS):
        with run_service(tmp_path) as service, ThreadPoolExecutor(CLIENTS) as pool:
            create = partial(create_until_killed, service.http, created_ids)
            writing = pool.map(create, unanswered_names)
            time.sleep(random.uniform(0.3, 1))
            service.process.kill()
            unanswered_names = list(writing)
    with (
        run_service(tmp_path) as service,
        Client(service.base_url, service.api_key) as client,
    ):
        listing = [*client.pets()]

    stored_ids = {pet.name: pet.id for pet in listing}
    assert len({*stored_ids.values()}) == len(stored_ids) == len(listing)
    assert len(created_ids) > KILLS
    assert created_ids.items() <= stored_ids.items()
    assert stored_ids.keys() <= {*created_ids, *unanswered_names}
