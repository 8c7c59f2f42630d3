"""64 clients at once on a running service: they create, repeat, read, list and walk all pages; then only create."""

import asyncio
import itertools
import json
import random
import re
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp

from tests.processes import RunningService, run_service
from tests.reliability.audit import Ledger
from tests.reliability.harness import SECRET_NAME, Leaks, Pet, Store, load_template
from tests.reliability.report import Row
from tools.local.store import client, use_local_environment

PART = "load"
_CLIENTS = 64
_WALKERS = 3  # the local store reads its whole table for each page
_STATUSES = ("available", "pending", "sold", None)


@dataclass(slots=True)
class Load:
    """What the clients share.

    Args:
        session: Sends requests.
        base_url: Of the service, ending in `/v1`.
        deadline: When they stop, in seconds of `time.monotonic()`.
    """

    session: aiohttp.ClientSession
    base_url: str
    deadline: float = 0.0
    ledger: Ledger = field(default_factory=Ledger)
    created: list[Pet] = field(default_factory=list)
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    creations: Row = field(default_factory=lambda: Row(PART, f"creations by {_CLIENTS} clients at once"))
    reads: Row = field(default_factory=lambda: Row(PART, f"animals read back by {_CLIENTS} clients at once"))
    pages: Row = field(default_factory=lambda: Row(PART, "filtered pages during that"))
    walks: Row = field(default_factory=lambda: Row(PART, "walks through all pages during that"))

    async def send(self, method: str, path: str, row: Row, expected: int, **arguments: Any) -> tuple[Any, Any] | None:
        """Send a request; what does not have the expected status counts in the row."""
        url = path if path.startswith("http") else self.base_url + path
        async with self.session.request(method, url, **arguments) as response:
            text = await response.text()
        row.check(response.status == expected, f"{method} {path}: {response.status} {text[:200]}")
        return (json.loads(text), response) if response.status == expected else None

    async def create(self) -> None:
        """Create an animal; every fourth with an Idempotency-Key, and then once more."""
        number = next(self.numbers)
        status = _STATUSES[number % len(_STATUSES)]
        new: Pet = {"name": f"{SECRET_NAME} {number}", "categoryId": number} | ({"status": status} if status else {})
        keyed = number % 4 == 0
        creation = self.ledger.open(new, self.creations, keyed=keyed)
        headers = {"Idempotency-Key": str(uuid.uuid4())} if keyed else {}
        for _ in range(2 if keyed else 1):
            self.creations.runs += 1
            answer = await self.send("POST", "/pets", self.creations, 201, json=new, headers=headers)
            if answer:
                creation.acknowledged.append(answer[0])
        self.created += creation.acknowledged[:1]

    async def read(self) -> None:
        """Read an animal that has been created."""
        if self.created:
            pet = random.choice(self.created)
            self.reads.runs += 1
            answer = await self.send("GET", f"/pets/{pet['id']}", self.reads, 200)
            if answer:
                self.reads.check(answer[0] == pet, f"{answer[0]} instead of {pet}", "losses")

    async def page(self) -> None:
        """List one page of one status."""
        status = random.choice(_STATUSES[:-1])
        self.pages.runs += 1
        answer = await self.send("GET", f"/pets?status={status}&limit=20", self.pages, 200)
        if answer:
            self.pages.check(all(pet["status"] == status for pet in answer[0]), f"{answer[0]}")
            self.pages.check(all(one["id"] < other["id"] for one, other in pairwise(answer[0])), f"{answer[0]}")

    async def walk(self) -> None:
        """Walk through all pages: what had been created before is met, once, as it was created."""
        before = list(self.created)
        path, met = "/pets?limit=100", list[Pet]()
        while path:
            answer = await self.send("GET", path, self.walks, 200)
            if answer is None:
                return
            met += answer[0]
            path = str(answer[1].links["next"]["url"]) if "next" in answer[1].links else ""
        self.walks.runs += 1
        by_id = {pet["id"]: pet for pet in met}
        self.walks.check(all(one["id"] < other["id"] for one, other in pairwise(met)), "ids do not rise", "doubles")
        for pet in before:
            self.walks.check(by_id.get(pet["id"]) == pet, f"{pet} was not met", "losses")

    async def keep_on(self, *acts: Callable[[], Awaitable[None]]) -> None:
        """Do one of these after the other until the time is up."""
        while time.monotonic() < self.deadline:
            try:
                await random.choice(acts)()
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                self.creations.fail("other", f"{type(error).__name__}: {error}")


async def _run(service: RunningService, mixed_s: float, creating_s: float) -> list[Row]:
    use_local_environment(service.announced["dynamodb_endpoint"])
    store = Store(service.announced["dynamodb_endpoint"], client(), load_template())
    connector, timeout = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=60)
    headers = {"Authorization": f"Bearer {service.api_key}"}
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers) as session:
        load = Load(session, service.base_url)
        load.deadline = time.monotonic() + mixed_s
        clients = [load.keep_on(load.create, load.create, load.read, load.page) for _ in range(_CLIENTS - _WALKERS)]
        await asyncio.gather(*clients, *(load.keep_on(load.walk) for _ in range(_WALKERS)))
        load.deadline = begin = time.monotonic() + creating_s
        before = load.creations.runs
        await asyncio.gather(*(load.keep_on(load.create) for _ in range(_CLIENTS)))
        rate = (load.creations.runs - before) / (time.monotonic() - begin + creating_s)
    pets = store.pets()
    counts = load.ledger.audit(pets)
    ids = len({pet["id"] for pet in load.created})
    load.creations.check(ids == len(load.created), f"{len(load.created) - ids} ids were given twice", "doubles")
    load.creations.check(store.counter() >= max(pet["id"] for pet in pets), "an id is above the counter", "doubles")
    load.creations.remark = (
        f"{ids:,} different ids, {counts['acknowledged']:,} acknowledged, {rate:.0f} requests/s at the end"
    )
    return [load.creations, load.reads, load.pages, load.walks]


def _search_logs(service: RunningService) -> Row:
    leaks = Leaks(re.compile(rf"{service.api_key}|{SECRET_NAME}|Bearer"))
    for line in (service.data / "functions.log").read_text("utf-8").splitlines():
        leaks("", line)
    return leaks.row(PART)


def run(*, quick: bool) -> list[Row]:
    """Run this part for a bounded time."""
    with tempfile.TemporaryDirectory(prefix="reliability-") as folder, run_service(Path(folder) / "data") as service:
        rows = asyncio.run(_run(service, *((6, 3) if quick else (60, 150))))
        return [*rows, _search_logs(service)]
