"""The command `seed`, which adds made-up animals through the API."""

import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer
from animal_store_client import Client, Pet

from tools.local.folder import DataFolder

_NAMES = ("Luna", "Rex", "Zoë", "Łatek", "Πάρης", "Шарик", "小白")
_BREEDS = ("Beagle", "Persian", "Gecko")  # of the categories 1 to 3
_STATUSES = ("available", "available", "pending", "sold", None)


def seed(
    *,
    count: Annotated[int, typer.Option(min=1, help="How many animals.")] = 100,
    base_url: Annotated[
        str | None,
        typer.Option(
            envvar="BASE_URL",
            help="The service for the key $API_KEY; by default, the running `make run`.",
        ),
    ] = None,
) -> None:
    """Add made-up animals. To continue after an interruption, run this again within 24 hours."""
    client = _connect(base_url)

    def add(index: int) -> Pet:
        chance = random.Random(index)  # noqa: S311 - nothing secret
        category = chance.randint(1, 3)
        name = f"{chance.choice(_NAMES)} the {_BREEDS[category - 1]}"
        # A key must not stand for two animals: replace the 5 when they change.
        key = f"seed-5-{index}"
        return client.create(
            name, category, chance.choice(_STATUSES), idempotency_key=key
        )

    with client, ThreadPoolExecutor(8) as pool:
        # A wrong address or key fails once, not 8 times.
        next(client.pages(page_size=1))
        known = sum(pet.replayed for pet in pool.map(add, range(count)))
    print(f"{count} animals: {count - known} added, {known} already there")


def _connect(base_url: str | None) -> Client:
    """Make a client for a service with $API_KEY; without one, for `make run` with its own key."""
    if base_url:
        try:
            return Client(base_url, os.environ.get("API_KEY", ""))
        except ValueError as error:
            sys.exit(f"BASE_URL, API_KEY: {error}.")
    folder = DataFolder()
    local_url = folder.base_url()
    if not local_url:
        sys.exit(f"No `make run` uses {folder.path}: start it, or give BASE_URL.")
    return Client(local_url, folder.api_key.read_text("utf-8").strip())
