"""Simulate the sharded design of docs/scale.md: `python -m benchmarks.shards`.

It checks ids, pages and look-ups, also after a move from one shard to several, and prints the rate of creations.
"""

import bisect
import heapq
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterable

LIMIT = 1000  # writes a second that one partition of DynamoDB takes
CREATIONS = 1_000_000

Epoch = tuple[int, int]
"""The ids after the first number are spread over the second number of shards; (0, 1) is today's layout."""


class Store:
    """A table; every function is told the epochs by its environment."""

    def __init__(self, epochs: list[Epoch]) -> None:
        self.epochs = epochs
        self.partitions: dict[tuple[int, int], list[int]] = defaultdict(list)

    def create(self, shard: int, epoch: Epoch) -> int:
        """Count one shard's counter up, and write the animal: two requests, whatever the number of shards."""
        after, shards = epoch
        ids = self.partitions[shards, shard]
        ids.append((after // shards + 1 + len(ids)) * shards + shard)
        return ids[-1]

    def get(self, pet_id: int) -> bool:
        """Look in the one partition that can have the id."""
        shards = next(shards for after, shards in reversed(self.epochs) if pet_id > after)
        ids = self.partitions[shards, pet_id % shards]
        place = bisect.bisect_left(ids, pet_id)
        return ids[place : place + 1] == [pet_id]

    def page(self, after: int, limit: int) -> list[int]:
        """Merge one query for each shard, one epoch after the other."""
        found: list[int] = []
        for _, shards in self.epochs:
            queries = [self.partitions[shards, shard] for shard in range(shards)]
            found += heapq.merge(
                *(ids[bisect.bisect_right(ids, after) :][:limit] for ids in queries)
            )
        return found[:limit]


def check(shards: int, animals: int, limit: int, chooser: random.Random) -> None:
    """Fill a store that moves from one shard to several, and read all of it."""
    old, new = (0, 1), (animals, shards)
    store = Store([old] if shards == 1 else [old, new])
    ids = [store.create(0, old) for _ in range(animals // 2)]
    # While functions of both versions run, the old ones count on, below the bound.
    epochs = [old if number % 10 == 0 else store.epochs[-1] for number in range(animals)]
    ids += [store.create(chooser.randrange(epoch[1]), epoch) for epoch in epochs]
    listed: list[int] = []
    while page := store.page(listed[-1] if listed else 0, limit):
        listed += page
    if len(set(ids)) < len(ids) or not all(map(store.get, ids)) or listed != sorted(ids):
        raise SystemExit(
            f"{shards} shards, pages of {limit}: ids are not unique, or an animal is not found or listed"
        )


def rate(shards: int, offered: int, chooser: random.Random) -> int:
    """Offer creations to shards chosen at random for 20 s; return how many a second are not throttled."""
    arrived = [Counter(chooser.randrange(shards) for _ in range(offered)) for _ in range(20)]
    return round(sum(min(count, LIMIT) for second in arrived for count in second.values()) / 20)


def drift(shards: int, chosen: Iterable[int]) -> int:
    """Return how far the id of a creation was behind the greatest one, at the most."""
    store = Store([])
    ids = [store.create(shard, (0, shards)) for shard in chosen]
    return max(
        greatest - own for greatest, own in zip(itertools.accumulate(ids, max), ids, strict=True)
    )


if __name__ == "__main__":
    chooser = random.Random(13)  # noqa: S311 - a simulation that gives the same figures each time
    print(
        "| shards | offered a second | taken | 80 % offered | taken | behind, at random | behind, in turn |"
    )
    print("|" + "---:|" * 7)
    for shards in (1, 2, 4, 8, 16):
        for limit in (1, 20, 100):
            check(shards, 2000, limit, chooser)
        rates = [
            (offered, rate(shards, offered, chooser))
            for offered in (shards * LIMIT, shards * LIMIT * 8 // 10)
        ]
        # In turn: each of 50 execution environments goes round the shards by itself.
        turns = [itertools.count(chooser.randrange(shards)) for _ in range(50)]
        at_random = drift(shards, (chooser.randrange(shards) for _ in range(CREATIONS)))
        in_turn = drift(shards, (next(chooser.choice(turns)) % shards for _ in range(CREATIONS)))
        row = [shards, *itertools.chain(*rates), at_random, in_turn]
        print("| " + " | ".join(f"{value:,}" for value in row) + " |")
    print(
        "\nIds are unique, pages are in order and skip nobody, and every animal is found by its id."
    )
