"""`make run` is killed while clients write: each acknowledged animal is there once."""

import random
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import httpx2
import pytest

from tests.support.handlers import pets
from tests.support.processes import run_service
from tools.local.folder import DataFolder
from tools.local.store import Database

KILLS, CLIENTS = 10, 32


def create_until_killed(http: httpx2.Client, ids: dict[str, int], name: str) -> str:
    """Create animals, the first with this name, and note their ids; return the unanswered name."""
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
def test_killed_service_loses_and_doubles_nothing(tmp_path: Path) -> None:
    answered: dict[str, int] = {}
    unanswered = [uuid.uuid4().hex for _ in range(CLIENTS)]
    for _ in range(KILLS):
        with run_service(tmp_path) as service, ThreadPoolExecutor(CLIENTS) as pool:
            create = partial(create_until_killed, service.http, answered)
            writing = pool.map(create, unanswered)
            time.sleep(random.uniform(0.3, 1))
            service.process.kill()
            unanswered = list(writing)
    with closing(Database(DataFolder(tmp_path).database)) as database:
        listed = pets(database)

    stored = {pet["name"]: pet["id"] for pet in listed}
    assert len({*stored.values()}) == len(stored) == len(listed)
    assert len(answered) > KILLS
    assert answered.items() <= stored.items()
    assert stored.keys() <= {*answered, *unanswered}
