"""`python -m tools seed`: fills a store with made-up animals through the API.

A run that was interrupted is continued by the same command: every creation has an Idempotency-Key made of the seed and
the animal's number, so the animals that are there already are recognized (for 24 hours).
"""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer
from animal_store_client import Pet
from rich.progress import track

from tools.admin import sample_data
from tools.admin.target import BaseUrlOption, KeyFileOption, console, open_client


def seed(
    *,
    count: Annotated[int, typer.Option(min=1, help="How many animals.")] = 100,
    seed: Annotated[int, typer.Option(help="Which animals: the same number makes the same ones.")] = 1,
    concurrency: Annotated[int, typer.Option(min=1, max=256, help="Requests at a time.")] = 8,
    base_url: BaseUrlOption = None,
    api_key_file: KeyFileOption = None,
) -> None:
    """Add made-up animals; run it again to continue after an interruption."""
    outcomes: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    start = time.monotonic()
    with open_client(base_url, api_key_file) as client, ThreadPoolExecutor(concurrency) as pool:

        def add(index: int) -> Pet:
            return client.create(
                *sample_data.animal(seed, index), idempotency_key=sample_data.idempotency_key(seed, index)
            )

        try:
            pets = pool.map(add, range(count))
            for pet in track(pets, "adding animals", total=count, console=console, transient=True):
                outcomes["already there" if pet.replayed else "added"] += 1
                statuses[pet.status or "without a status"] += 1
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            if outcomes:
                _print_summary(count, outcomes, statuses, time.monotonic() - start)


def _print_summary(count: int, outcomes: Counter[str], statuses: Counter[str], seconds: float) -> None:
    done = outcomes.total()
    print(f"{done} of {count} animals: {outcomes['added']} added, {outcomes['already there']} already there")
    print(f"{seconds:.1f} s, {done / seconds:.0f} animals/s")
    print(", ".join(f"{number} {status}" for status, number in statuses.most_common()))
    if done < count:
        print("The same command continues where this one ended.")
