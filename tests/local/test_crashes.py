"""`make run` is killed outright while clients write: what was answered is there, once."""

import random
import threading
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes import RunningService, run_service, wait_for


@pytest.mark.parametrize(
    ("kills", "clients"), [pytest.param(2, 8, id="quick"), pytest.param(20, 32, id="long", marks=pytest.mark.slow)]
)
def test_nothing_is_lost_or_doubled(tmp_path: Path, kills: int, clients: int, record_property: Any) -> None:
    writers, chance = None, random.Random(0)
    for _ in range(kills):
        with run_service(tmp_path) as service:
            writers = writers or Writers(clients, service)
            writers.target, before = service, len(writers.seen)
            wait_for(lambda: len(writers.seen) > before)  # noqa: B023
            time.sleep(chance.uniform(0, 1))
            service.process.kill()
            service.process.wait()
    assert writers
    with run_service(tmp_path) as service:
        writers.target = service
        writers.finish()
        listed = list_all(service)

    seen, unanswered = writers.seen, writers.unanswered
    record_property(f"SIGKILLs of `make run` while {clients} clients write", kills)
    record_property("creations by these, answered", len(seen))
    record_property("creations by these, not answered", len(unanswered))
    names = Counter(pet["name"] for pet in listed)
    assert len({pet["id"] for pet in listed}) == len(listed)
    assert {pet["name"]: pet["id"] for pet in listed if pet["name"] in seen} == seen
    assert set(names.values()) == {1}
    assert set(names) <= seen.keys() | unanswered


class Writers:
    """Clients that create animals until they are finished; every other one repeats what was not answered."""

    def __init__(self, clients: int, target: RunningService) -> None:
        self.seen: dict[str, int] = {}  # ids by the names of the animals whose creation was answered
        self.unanswered: set[str] = set()
        self.target = target
        self._done = threading.Event()
        self._pool = ThreadPoolExecutor(clients)
        self._writing = [self._pool.submit(self._write, repeat=bool(number % 2)) for number in range(clients)]

    def finish(self) -> None:
        self._done.set()
        for writing in self._writing:
            writing.result()
        self._pool.shutdown()

    def _write(self, *, repeat: bool) -> None:
        with httpx.Client(timeout=20) as http:
            while not self._done.is_set():
                name = uuid.uuid4().hex
                while not self._create(http, name, {"Idempotency-Key": name} if repeat else {}) and repeat:
                    pass

    def _create(self, http: httpx.Client, name: str, headers: dict[str, str]) -> bool:
        headers = {**headers, "Authorization": f"Bearer {self.target.api_key}"}
        try:
            response = http.post(f"{self.target.base_url}/pets", headers=headers, json={"name": name, "categoryId": 1})
        except httpx.TransportError as error:
            if not isinstance(error, httpx.ConnectError):
                self.unanswered.add(name)  # it may have been added
            time.sleep(0.05)
            return False
        assert response.status_code == 201, response.text
        self.seen[name] = response.json()["id"]
        return True


def list_all(service: RunningService) -> list[dict[str, Any]]:
    pets: list[dict[str, Any]] = []
    url: str | None = "/pets?limit=100"
    while url:
        response = service.http.get(url)
        pets += response.json()
        url = response.links.get("next", {}).get("url")
    return pets
