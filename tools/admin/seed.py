"""The command `seed`, which adds made-up animals through the API."""

import os
import random
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer
from animal_store_client import Client, Pet
from rich.console import Console
from rich.progress import track

from tools.local.folder import DataFolder

_NAMES = ("Luna", "Rex", "Zoë", "Łatek", "Πάρης", "Шарик", "小白")
_BREEDS = {  # by category
    1: ("Beagle", "Poodle", "Shiba Inu"),
    2: ("Maine Coon", "Persian", "Siamese"),
    3: ("Bearded Dragon", "Budgerigar", "Gecko"),
}
_STATUSES = ("available", "available", "pending", "sold", None)
_EXAMPLE = "For instance: make seed BASE_URL=http://127.0.0.1:3000/v1 API_KEY=..."


def seed(
    *,
    count: Annotated[int, typer.Option(min=1, help="How many animals.")] = 100,
    seed: Annotated[
        int, typer.Option(help="Which animals: the same number makes the same ones.")
    ] = 1,
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
    outcomes: Counter[bool] = Counter()

    def add(index: int) -> Pet:
        chance = random.Random(f"{seed}/{index}")  # noqa: S311 - nothing secret
        category = chance.choice(tuple(_BREEDS))
        name = f"{chance.choice(_NAMES)} the {chance.choice(_BREEDS[category])}"
        # A key must not stand for two animals: replace the 4 when they change.
        key = f"seed-4-{seed}-{index}"
        return client.create(
            name, category, chance.choice(_STATUSES), idempotency_key=key
        )

    with client, ThreadPoolExecutor(8) as pool:
        next(
            client.pages(page_size=1)
        )  # a wrong address or key fails once, not 8 times
        pets = pool.map(add, range(count))
        console = Console(stderr=True)
        for pet in track(pets, "adding animals", total=count, console=console):
            outcomes[pet.replayed] += 1
    added, known = outcomes[False], outcomes[True]
    print(f"{count} animals: {added} added, {known} already there")


def _connect(base_url: str | None) -> Client:
    """Make a client for a service with $API_KEY; without one, for `make run` with its own key."""
    if base_url:
        try:
            return Client(base_url, os.environ.get("API_KEY", ""))
        except ValueError as error:
            sys.exit(f"{error}. {_EXAMPLE}")
    folder = DataFolder()
    local_url = folder.base_url()
    if not local_url:
        sys.exit(
            f"No `make run` uses {folder.path}. Start it, or name a service. {_EXAMPLE}"
        )
    return Client(local_url, folder.api_key.read_text("utf-8").strip())
