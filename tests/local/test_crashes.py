"""`make run` is killed outright while clients write: what was answered is there, once."""

import random
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.functions import client, pets
from tests.processes import RunningService, run_service
from tools.local.dynamodb import Database
from tools.local.folder import DataFolder


def create_until_killed(service: RunningService, name: str, with_key: bool) -> tuple[dict[str, int], str]:
    """Create animals, the first with this name; return the ids by name of those that were answered, and who was not."""
    seen: dict[str, int] = {}
    while True:
        headers = {"Idempotency-Key": name} if with_key else {}
        try:
            response = service.http.post("/pets", headers=headers, json={"name": name, "categoryId": 1})
        except httpx.TransportError:
            return seen, name
        assert response.status_code == 201, response.text
        seen[name] = response.json()["id"]
        name = uuid.uuid4().hex


@pytest.mark.parametrize(
    ("kills", "clients"), [pytest.param(2, 8, id="quick"), pytest.param(20, 32, id="long", marks=pytest.mark.slow)]
)
def test_nothing_is_lost_or_doubled(tmp_path: Path, kills: int, clients: int, record_property: Any) -> None:
    seen: dict[str, int] = {}
    unanswered: set[str] = set()  # these animals may be there
    names = [uuid.uuid4().hex for _ in range(clients)]
    for _ in range(kills):
        with run_service(tmp_path) as service, ThreadPoolExecutor(clients) as pool:
            odd = [bool(number % 2) for number in range(clients)]
            writing = [pool.submit(create_until_killed, service, *each) for each in zip(names, odd, strict=True)]
            time.sleep(random.uniform(0.3, 1))
            service.process.kill()
            for number, each in enumerate(writing):
                answered, name = each.result()
                seen |= answered
                unanswered.add(name)
                # Every other client repeats what was not answered.
                names[number] = name if odd[number] else uuid.uuid4().hex
    with closing(Database(DataFolder(tmp_path).database)) as database:
        listed = pets(client(database))

    record_property(f"SIGKILLs of `make run` while {clients} clients write", kills)
    record_property("creations by these, answered", len(seen))
    record_property("creations by these, not answered", len(unanswered))
    ids = {pet["name"]: pet["id"] for pet in listed}
    assert len({*ids.values()}) == len(ids) == len(listed)
    assert kills < len(seen)
    assert seen.items() <= ids.items() <= seen.items() | {(name, ids.get(name)) for name in unanswered}
