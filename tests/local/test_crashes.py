"""`make run` is killed outright while clients write: what was answered is there, once."""

import random
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import httpx
import pytest
from lambda_local.dynamodb import Database

from tests.support.handlers import client, pets
from tests.support.processes import run_service
from tools.local.folder import DataFolder

KILLS, CLIENTS = 20, 32


def create_until_killed(
    http: httpx.Client, ids: dict[str, int | None], name: str, with_key: bool
) -> str:
    """Create animals, the first with this name, and note their ids; return who was not answered."""
    while True:
        ids.setdefault(name)
        headers = {"Idempotency-Key": name} if with_key else {}
        pet = {"name": name, "categoryId": 1}
        try:
            response = http.post("/pets", headers=headers, json=pet)
        except httpx.TransportError:
            return name
        ids[name] = response.json()["id"]
        name = uuid.uuid4().hex


@pytest.mark.slow
def test_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    # By name; None where nothing was answered: these animals may be there.
    ids: dict[str, int | None] = {}
    names = [uuid.uuid4().hex for _ in range(CLIENTS)]
    # Every other client repeats what was not answered.
    repeats = [False, True] * (CLIENTS // 2)
    for _ in range(KILLS):
        with run_service(tmp_path) as service, ThreadPoolExecutor(CLIENTS) as pool:
            create = partial(create_until_killed, service.http, ids)
            writing = pool.map(create, names, repeats)
            time.sleep(random.uniform(0.3, 1))
            service.process.kill()
            unanswered = zip(writing, repeats, strict=True)
            names = [name if same else uuid.uuid4().hex for name, same in unanswered]
    with closing(Database(DataFolder(tmp_path).database)) as database:
        listed = pets(client(database))

    answered = {name: id_ for name, id_ in ids.items() if id_}
    stored = {pet["name"]: pet["id"] for pet in listed}
    assert len({*stored.values()}) == len(stored) == len(listed)
    assert len(answered) > KILLS
    assert answered.items() <= stored.items()
    assert stored.keys() <= ids.keys()
