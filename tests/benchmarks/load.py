"""Adds animals at a steady rate, and prints how long the calls took. The animals stay.

    API_KEY=... .venv/bin/python -m tests.benchmarks.load RATE SECONDS BASE_URL

RATE is the number of creations a second. The client repeats a creation after a temporary failure;
any other failure ends in an error.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import typer
from animal_store_client import Client

THREADS = 100


def main(rate: int, seconds: int, base_url: str) -> None:
    """Add animals to the service at BASE_URL, with the key in API_KEY."""

    def create(number: int) -> float:
        """Add an animal when its turn comes; return the seconds that this took."""
        time.sleep(max(0, started + number / rate - time.monotonic()))
        sent = time.monotonic()
        client.create("Rex", 3)
        return time.monotonic() - sent

    with (
        Client(base_url, os.environ["API_KEY"], max_in_flight=THREADS) as client,
        ThreadPoolExecutor(THREADS) as pool,
    ):
        started = time.monotonic()
        durations = sorted(pool.map(create, range(rate * seconds)))
        duration = time.monotonic() - started
    count = len(durations)
    median, p99 = durations[count // 2], durations[count * 99 // 100]
    print(f"{count} creations, {count / duration:.0f} a second")
    print(f"median {1000 * median:.0f} ms, 99th percentile {1000 * p99:.0f} ms")


if __name__ == "__main__":
    typer.run(main)
