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


def create_until_killed(
    http: httpx.Client, ids: dict[str, int | None], name: str, with_key: bool
) -> str:
    """Create animals, the first with this name, and note their ids; return who was not answered."""
    while True:
        ids.setdefault(name)
        headers = {"Idempotency-Key": name} if with_key else {}
        try:
            response = http.post(
                "/pets", headers=headers, json={"name": name, "categoryId": 1}
            )
        except httpx.TransportError:
            return name
        assert response.status_code == 201, response.text
        ids[name] = response.json()["id"]
        name = uuid.uuid4().hex


@pytest.mark.parametrize(
    ("kills", "clients"),
    [
        pytest.param(2, 8, id="quick"),
        pytest.param(20, 32, id="long", marks=pytest.mark.slow),
    ],
)
def test_nothing_is_lost_or_doubled(tmp_path: Path, kills: int, clients: int) -> None:
    # By name; None where nothing was answered: these animals may be there.
    ids: dict[str, int | None] = {}
    names = [uuid.uuid4().hex for _ in range(clients)]
    with_keys = [bool(number % 2) for number in range(clients)]
    for _ in range(kills):
        with run_service(tmp_path) as service, ThreadPoolExecutor(clients) as pool:
            writing = pool.map(
                partial(create_until_killed, service.http, ids), names, with_keys
            )
            time.sleep(random.uniform(0.3, 1))
            service.process.kill()
            # Every other client repeats what was not answered.
            names = [
                name if number % 2 else uuid.uuid4().hex
                for number, name in enumerate(writing)
            ]
    with closing(Database(DataFolder(tmp_path).database)) as database:
        listed = pets(client(database))

    answered = {name: id_ for name, id_ in ids.items() if id_}
    stored = {pet["name"]: pet["id"] for pet in listed}
    assert len({*stored.values()}) == len(stored) == len(listed)
    assert kills < len(answered)
    assert answered.items() <= stored.items()
    assert stored.keys() <= ids.keys()
