"""Measure the local service (`make run`) among few and many animals and under load; compare the emulator as its store.

Run by `make bench-local`. ANIMALS is how many there are in the end, EMULATED how many in the emulator, which evaluates
each of them for every query. Times are orientation, ratios are the result.
"""

import itertools
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.processes import run_service
from tools.deployment import emulator
from tools.local import template

ANIMALS = int(os.environ.get("ANIMALS", "100000"))
EMULATED = int(os.environ.get("EMULATED", "1000"))
SECONDS = float(os.environ.get("SECONDS", "30"))
FEW, WRITERS, READERS = 100, 64, 200
ROUNDS, SAMPLES = 10, 40

KINDS = {"list of 100": "/pets?limit=100", "filtered list": "/pets?status=sold", "get": "/pets/7"}
_SLOWER = 1.5  # at the most, among many animals


@contextmanager
def client(folder: Path, **variables: Any) -> Iterator[httpx.Client]:
    """Run the service on a folder; give a client with as many connections as it has threads."""
    # The service closes a connection that has been idle for 5 s: give it up before.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=2)
    with run_service(folder, **variables) as service:
        headers, url = service.http.headers, service.base_url
        with httpx.Client(base_url=url, headers=headers, limits=limits, timeout=60, trust_env=False) as http:
            yield http


def medians(http: httpx.Client) -> dict[str, float]:
    """Ask one request after the other; return the median of each kind in ms, of the best round on a busy machine."""
    found = dict.fromkeys(KINDS, float("inf"))
    for _ in range(ROUNDS):
        for kind, path in KINDS.items():
            times = []
            for _ in range(SAMPLES):
                begin = time.perf_counter()
                http.get(path).raise_for_status()
                times.append((time.perf_counter() - begin) * 1000)
            found[kind] = min(found[kind], statistics.median(times))
    return found


def create(http: httpx.Client, count: int) -> list[int]:
    """Create that many animals by clients at once; return the ids that were answered."""

    def write(number: int) -> list[int]:
        status = ("available", "pending", "sold")[number % 3]
        response = http.post("/pets", json={"name": f"Animal {number}", "categoryId": 1, "status": status})
        return [response.json()["id"]] if response.status_code == httpx.codes.CREATED else []

    with ThreadPoolExecutor(WRITERS) as pool:
        return list(itertools.chain.from_iterable(pool.map(write, range(count))))


def read_all(http: httpx.Client) -> list[int]:
    """Follow the pages of the whole list; return the ids."""
    ids: list[int] = []
    path = "/pets?limit=100"
    while path:
        response = http.get(path).raise_for_status()
        ids += [pet["id"] for pet in response.json()]
        path = response.links.get("next", {}).get("url", "")
    return ids


def load(http: httpx.Client) -> Counter[int]:
    """Read on many connections at once for a while; return how often there was which status, 0 for no response."""
    end = time.monotonic() + SECONDS

    def read(path: str) -> Counter[int]:
        statuses: Counter[int] = Counter()
        while time.monotonic() < end:
            try:
                statuses[http.get(path).status_code] += 1
            except httpx.HTTPError:
                statuses[0] += 1
        return statuses

    with ThreadPoolExecutor(READERS) as pool:
        return sum(pool.map(read, itertools.islice(itertools.cycle(KINDS.values()), READERS)), Counter())


def embedded(folder: Path) -> tuple[list[dict[str, float]], bool]:
    """Measure the service on its own store; tell whether all is right."""
    with client(folder) as http:
        ids = create(http, FEW)
        few = medians(http)
        begin = time.monotonic()
        ids += create(http, ANIMALS - FEW)
        seconds = time.monotonic() - begin
        many, stored, statuses = medians(http), read_all(http), load(http)
    doubles, lost, ordered = len(ids) - len(set(ids)), len(set(ids) - set(stored)), stored == sorted(set(stored))
    print(f"{ANIMALS:,} creations by {WRITERS} clients, {ANIMALS / seconds:,.0f} a second: {len(ids):,} answered,")
    print(f"{doubles} ids given twice, {lost} animals lost, the list in order: {ordered}")
    print(f"{READERS} connections for {SECONDS:g} s, requests by status: {dict(statuses)}")
    ratios = {kind: many[kind] / few[kind] for kind in KINDS}
    right = ordered and not doubles and not lost and set(statuses) == {200} and max(ratios.values()) <= _SLOWER
    return [few, many, ratios], right


def emulated(folder: Path) -> list[dict[str, float]]:
    """Measure the service on the emulator, as it was before."""
    with emulator.running(folder / "emulator") as aws:
        credentials = {"AWS_ACCESS_KEY_ID": emulator.ACCOUNT, "AWS_SECRET_ACCESS_KEY": "none"}
        variables = {**credentials, "AWS_DEFAULT_REGION": template.REGION, "AWS_ENDPOINT_URL_DYNAMODB": aws}
        with client(folder / "data", **variables) as http:
            create(http, FEW)
            few = medians(http)
            create(http, EMULATED - FEW)
            return [few, medians(http)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        columns, right = embedded(Path(folder, "embedded"))
        columns += emulated(Path(folder, "emulated"))
    print(
        f"\n| p50, ms | {FEW} | {ANIMALS:,} | ratio | emulator, {FEW} | emulator, {EMULATED:,} |\n|---|" + "---:|" * 5
    )
    for kind in KINDS:
        print(f"| {kind} | " + " | ".join(f"{column[kind]:.1f}" for column in columns) + " |")
    if not right:
        sys.exit("Animals were lost, ids doubled, reads failed, or the service is slower among many animals.")


if __name__ == "__main__":
    main()
