"""Creates animals through the layer from many threads until it is killed; prints each key and id that it was given."""

import sys
import threading
import time
from itertools import count
from pathlib import Path

from animal_store import catalogue, dynamodb
from animal_store.auth import Caller

from tools.local.dynamodb import Database

THREADS = 32
CALLER = Caller(key_hash="caller", label="caller")


def create(thread: int) -> None:
    """Create one animal after another, with keys that are the same in each process: a restart begins with retries."""
    dynamodb.budget.set(dynamodb.Budget(time.monotonic() + 3600))
    for number in count():
        key = f"{thread}-{number}"
        creation = catalogue.create_pet({"name": key, "categoryId": 1}, CALLER, key)
        sys.stdout.write(f"{key} {creation.pet['id']}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    Database(Path(sys.argv[1])).attach(dynamodb.client)
    for thread in range(THREADS):
        threading.Thread(target=create, args=(thread,)).start()
