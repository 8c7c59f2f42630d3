"""Measure the local service (`make run`) among few and many animals and under load; compare the emulator as its store.

Run by `make bench-local`, which fails at the first wrong answer. ANIMALS is how many there are in the end, EMULATED how
many in the emulator, which evaluates each of them for every query. Times are orientation, ratios are the result.
"""

import itertools
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from animal_store_client import Client

from tests.rehearsal import emulator
from tests.support.processes import RunningService, run_service
from tools.local import template

ANIMALS = int(os.environ.get("ANIMALS", "100000"))
EMULATED = int(os.environ.get("EMULATED", "1000"))
SECONDS = float(os.environ.get("SECONDS", "30"))
FEW, WRITERS, READERS = 100, 64, 200
ROUNDS, SAMPLES = 10, 40

KINDS = {"list of 100": "/pets?limit=100", "filtered list": "/pets?status=sold", "get": "/pets/7"}
_SLOWER = 1.5  # at the most, among many animals


def medians(service: RunningService) -> dict[str, float]:
    """Ask one request after the other; return the median of each kind in ms, of the best round on a busy machine."""

    def milliseconds(path: str) -> float:
        begin = time.perf_counter()
        service.http.get(path).raise_for_status()
        return (time.perf_counter() - begin) * 1000

    rounds = [
        {
            kind: statistics.median(milliseconds(path) for _ in range(SAMPLES))
            for kind, path in KINDS.items()
        }
        for _ in range(ROUNDS)
    ]
    return {kind: min(each[kind] for each in rounds) for kind in KINDS}


def measure(service: RunningService, animals: int) -> list[dict[str, float]]:
    """Create that many animals by clients at once; return the medians among few and among all of them."""

    def create(number: int) -> int:
        status = ("available", "pending", "sold")[number % 3]
        pet = service.http.post(
            "/pets", json={"name": f"Animal {number}", "categoryId": 1, "status": status}
        )
        return int(pet.raise_for_status().json()["id"])

    with ThreadPoolExecutor(WRITERS) as pool, Client(service.base_url, service.api_key) as reader:
        ids = list(pool.map(create, range(FEW)))
        few = medians(service)
        ids += pool.map(create, range(FEW, animals))
        listed = [pet.id for pet in reader.pets()]  # it checks their order
    if listed != sorted(ids):
        sys.exit(
            f"{len(ids) - len(set(ids))} ids were given twice, {len(set(ids) - set(listed))} animals were lost."
        )
    return [few, medians(service)]


def load(service: RunningService) -> int:
    """Read on many connections at once for a while; return how many requests were answered, each with 200."""
    end = time.monotonic() + SECONDS

    def read(path: str) -> int:
        count = 0
        while time.monotonic() < end:
            service.http.get(path).raise_for_status()
            count += 1
        return count

    with ThreadPoolExecutor(READERS) as pool:
        return sum(pool.map(read, itertools.islice(itertools.cycle(KINDS.values()), READERS)))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        with run_service(Path(folder, "embedded")) as service:
            few, many = measure(service, ANIMALS)
            print(
                f"{ANIMALS:,} creations by {WRITERS} clients: ids all distinct, animals all listed in order"
            )
            print(
                f"{READERS} connections for {SECONDS:g} s: {load(service):,} requests, all answered with 200"
            )
        with emulator.running(Path(folder, "emulator")) as aws:
            variables: dict[str, Any] = {
                "AWS_ACCESS_KEY_ID": emulator.ACCOUNT,
                "AWS_SECRET_ACCESS_KEY": "none",
            }
            variables |= {"AWS_DEFAULT_REGION": template.REGION, "AWS_ENDPOINT_URL_DYNAMODB": aws}
            with run_service(Path(folder, "data"), **variables) as service:
                emulated = measure(service, EMULATED)
    ratios = {kind: many[kind] / few[kind] for kind in KINDS}
    print(f"\n| p50, ms | {FEW} | {ANIMALS:,} | ratio | emulator, {FEW} | emulator, {EMULATED:,} |")
    print("|---|" + "---:|" * 5)
    for kind in KINDS:
        print(
            f"| {kind} | "
            + " | ".join(f"{column[kind]:.1f}" for column in (few, many, ratios, *emulated))
            + " |"
        )
    if max(ratios.values()) > _SLOWER:
        sys.exit("The service is slower among many animals.")
