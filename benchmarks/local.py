"""Measure the local service (`make run`) among few and many animals and under load; compare the emulator as its store.

Run by `make bench-local`. ANIMALS is how many there are in the end, EMULATED how many in the emulator, which evaluates
each of them for every query. Times are orientation, ratios are the result.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx

from tools import ROOT
from tools.deployment import emulator
from tools.local import template

ANIMALS = int(os.environ.get("ANIMALS", "100000"))
EMULATED = int(os.environ.get("EMULATED", "1000"))
SECONDS = float(os.environ.get("SECONDS", "30"))
FEW, WRITERS, READERS = 100, 64, 200
ROUNDS, SAMPLES = 10, 40

KINDS = {"list of 100": "/pets?limit=100", "filtered list": "/pets?status=sold", "get": "/pets/7"}
_START_SECONDS = 60
_SLOWER = 1.5  # at the most, among many animals


def say(message: str) -> None:
    """Tell the person at the terminal what is being done."""
    print(message, file=sys.stderr, flush=True)


@contextmanager
def running(folder: Path, **variables: str) -> Iterator[dict[str, str]]:
    """Run the service on a folder until the context ends; give its base URL and its key."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment = {**inherited, "PORT": "0", "DATA": str(folder), **variables}
    command = [sys.executable, "-m", "tools", "run"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not (folder / "service.json").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("The service does not start: try `make run`.")
            time.sleep(0.05)
        base_url = json.loads((folder / "service.json").read_text())["base_url"]
        yield {"base_url": base_url, "key": (folder / "api-key").read_text().strip()}
    finally:
        process.terminate()
        process.wait(_START_SECONDS)


@asynccontextmanager
async def client(service: dict[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {service['key']}"}
    # The service closes a connection that has been idle for 5 s: give it up before.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=2)
    async with httpx.AsyncClient(
        base_url=service["base_url"], headers=headers, limits=limits, timeout=60, trust_env=False
    ) as http:
        yield http


async def medians(http: httpx.AsyncClient) -> dict[str, float]:
    """Ask one request after the other; return the median of each kind in ms, of the best round on a busy machine."""
    found = dict.fromkeys(KINDS, float("inf"))
    for _ in range(ROUNDS):
        for kind, path in KINDS.items():
            times = []
            for _ in range(SAMPLES):
                begin = time.perf_counter()
                (await http.get(path)).raise_for_status()
                times.append((time.perf_counter() - begin) * 1000)
            found[kind] = min(found[kind], statistics.median(times))
    return found


async def create(http: httpx.AsyncClient, count: int) -> tuple[list[int], int]:
    """Create that many animals by clients at once; return the ids that were answered, and how many were refused."""
    numbers, ids, refused = iter(range(count)), list[int](), 0

    async def write() -> None:
        nonlocal refused
        for number in numbers:
            status = ("available", "pending", "sold")[number % 3]
            response = await http.post("/pets", json={"name": f"Animal {number}", "categoryId": 1, "status": status})
            if response.status_code == httpx.codes.CREATED:
                ids.append(response.json()["id"])
            else:
                refused += 1

    await asyncio.gather(*(write() for _ in range(WRITERS)))
    return ids, refused


async def read_all(http: httpx.AsyncClient) -> list[int]:
    """Follow the pages of the whole list; return the ids."""
    ids: list[int] = []
    path = "/pets?limit=100"
    while path:
        response = (await http.get(path)).raise_for_status()
        ids += [pet["id"] for pet in response.json()]
        path = response.links.get("next", {}).get("url", "")
    return ids


async def load(service: dict[str, str]) -> tuple[int, int]:
    """Read on many connections at once for a while; return how many requests there were, and how many failed."""
    answers = {True: 0, False: 0}
    end = time.monotonic() + SECONDS

    async def read(http: httpx.AsyncClient, path: str) -> None:
        while time.monotonic() < end:
            try:
                right = (await http.get(path)).status_code == httpx.codes.OK
            except httpx.HTTPError:
                right = False
            answers[right] += 1

    async with client(service) as http:
        paths = list(KINDS.values())
        await asyncio.gather(*(read(http, paths[number % len(paths)]) for number in range(READERS)))
    return sum(answers.values()), answers[False]


async def embedded(folder: Path) -> tuple[list[dict[str, float]], bool]:
    """Measure the service on its own store."""
    with running(folder) as service:
        async with client(service) as http:
            ids, refused = await create(http, FEW)
            few = await medians(http)
            say(f"creating {ANIMALS - FEW:,} animals by {WRITERS} clients")
            begin = time.monotonic()
            more, busy = await create(http, ANIMALS - FEW)
            seconds = time.monotonic() - begin
            acknowledged = set(ids + more)
            many = await medians(http)
            stored = await read_all(http)
        say(f"reading on {READERS} connections for {SECONDS:g} s")
        requests, failed = await load(service)
    doubles, lost = len(ids + more) - len(acknowledged), len(acknowledged - set(stored))
    print(f"{ANIMALS:,} creations by {WRITERS} clients, {len(more) / seconds:,.0f} a second: {refused + busy} refused,")
    print(f"{doubles} ids given twice, {lost} animals lost, the list in order: {stored == sorted(set(stored))}")
    print(f"{READERS} connections for {SECONDS:g} s: {requests:,} requests, {failed / requests:.3%} not 200")
    ratios = {kind: many[kind] / few[kind] for kind in KINDS}
    right = not (doubles or lost or failed) and max(ratios.values()) <= _SLOWER and stored == sorted(set(stored))
    return [few, many, ratios], right


async def emulated(folder: Path) -> list[dict[str, float]]:
    """Measure the service on the emulator, as it was before."""
    with emulator.running(folder / "emulator") as aws:
        credentials = {"AWS_ACCESS_KEY_ID": emulator.ACCOUNT, "AWS_SECRET_ACCESS_KEY": "none"}
        variables = {**credentials, "AWS_DEFAULT_REGION": template.REGION, "AWS_ENDPOINT_URL_DYNAMODB": aws.endpoint}
        with running(folder / "data", **variables) as service:
            async with client(service) as http:
                await create(http, FEW)
                few = await medians(http)
                await create(http, EMULATED - FEW)
                return [few, await medians(http)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        columns, right = asyncio.run(embedded(Path(folder, "embedded")))
        say(f"the same among {EMULATED:,} animals in the emulator")
        columns += asyncio.run(emulated(Path(folder, "emulated")))
    print(
        f"\n| p50, ms | {FEW} | {ANIMALS:,} | ratio | emulator, {FEW} | emulator, {EMULATED:,} |\n|---"
        + "|---:" * 5
        + "|"
    )
    for kind in KINDS:
        print(f"| {kind} | " + " | ".join(f"{column[kind]:.1f}" for column in columns) + " |")
    if not right:
        sys.exit("Animals were lost, ids doubled, reads failed, or the service is slower among many animals.")


if __name__ == "__main__":
    main()
