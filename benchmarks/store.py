"""The DynamoDB of the measured functions: its animals, and what reading them is charged as."""

import math
from contextlib import closing
from functools import cache

from tests.support.fault_injection import FaultyStore
from tests.support.handlers import ANIMALS, ask, empty_store, items, send

Item = dict[str, dict[str, str]]
"""An item in DynamoDB's own JSON."""


@cache
def _created() -> Item:
    with closing(FaultyStore()):
        send("create-201")
    return dict(items("pet")[-1])


def animal(number: int) -> Item:
    """Make an animal with the attributes that a creation stores."""
    name = f"Animal number {number}"
    return _created() | {"id": {"N": str(number)}, "name": {"S": name}}


def size(item: Item) -> int:
    """Return an item's bytes, of which each two digits take one, and each number one more.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    total = 0
    for name, value in item.items():
        digits = math.ceil(len(value["N"]) / 2) + 1 if "N" in value else 0
        total += len(name) + len(value.get("S", "").encode()) + digits
    return total


def fill() -> None:
    """Fill the store, which has the key of the events, with 300 animals."""
    empty_store()
    counter = {"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": "300"}}
    for item in (counter, *map(animal, range(1, 301))):
        ask("PutItem", ANIMALS, Item=item)
