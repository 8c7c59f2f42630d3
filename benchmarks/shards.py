"""Simulate the sharded design of docs/scale.md: `python -m benchmarks.shards`.

It checks ids, pages and look-ups, also after a move from one shard to several, and prints the rate of creations.
"""

import bisect
import heapq
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

LIMIT = 1000  # writes a second that one partition of DynamoDB takes
CREATIONS = 1_000_000


@dataclass(frozen=True)
class Epoch:
    """From the id after `after` on, animals are spread over that many shards; the first epoch is today's layout."""

    after: int
    shards: int

    def partition(self, shard: int) -> str:
        return "pet" if self.shards == 1 else f"pet#{self.shards}#{shard}"


@dataclass
class Store:
    """A table with its counters, and the epochs that every function is told by its environment."""

    epochs: list[Epoch]
    counters: dict[str, int] = field(default_factory=dict)
    partitions: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def create(self, shard: int, epoch: Epoch) -> int:
        """Count one shard's counter up, and write the animal: two requests, whatever the number of shards."""
        name = epoch.partition(shard)
        self.counters[name] = number = self.counters.get(name, epoch.after // epoch.shards) + 1
        pet_id = number * epoch.shards + shard
        bisect.insort(self.partitions[name], pet_id)
        return pet_id

    def get(self, pet_id: int) -> bool:
        """Look in the one partition that can have the id."""
        epoch = next(epoch for epoch in reversed(self.epochs) if pet_id > epoch.after)
        ids = self.partitions[epoch.partition(pet_id % epoch.shards)]
        place = bisect.bisect_left(ids, pet_id)
        return ids[place : place + 1] == [pet_id]

    def page(self, after: int, limit: int) -> list[int]:
        """Merge one query for each shard, in this epoch and, while the page is not full, in the next ones."""
        found: list[int] = []
        for epoch, following in itertools.pairwise([*self.epochs, Epoch(2**63, 1)]):
            if after < following.after and len(found) < limit:
                shards = [self.partitions[epoch.partition(shard)] for shard in range(epoch.shards)]
                found += heapq.merge(*(ids[bisect.bisect_right(ids, after) :][:limit] for ids in shards))
        return found[:limit]


def check(shards: int, animals: int, limit: int, chooser: random.Random) -> None:
    """Fill a store that moves from one shard to several, and read all of it."""
    old, new = Epoch(0, 1), Epoch(animals, shards)
    store = Store([old] if shards == 1 else [old, new])
    ids = [store.create(0, old) for _ in range(animals // 2)]
    # While functions of both versions run, the old ones count on, below the bound.
    epochs = [old if number % 10 == 0 else store.epochs[-1] for number in range(animals)]
    ids += [store.create(chooser.randrange(epoch.shards), epoch) for epoch in epochs]
    listed: list[int] = []
    while page := store.page(listed[-1] if listed else 0, limit):
        listed += page
    if len(set(ids)) < len(ids) or not all(map(store.get, ids)) or listed != sorted(ids):
        raise SystemExit(f"{shards} shards, pages of {limit}: ids are not unique, or an animal is not found or listed")


def rate(shards: int, offered: int, chooser: random.Random) -> int:
    """Offer creations to shards chosen at random; return how many a second are not throttled."""
    seconds, taken = 20, 0
    for _ in range(seconds):
        arrived = Counter(chooser.randrange(shards) for _ in range(offered))
        taken += sum(min(count, LIMIT) for count in arrived.values())
    return round(taken / seconds)


def drift(shards: int, chosen: Iterable[int]) -> int:
    """Return how far the id of a creation was behind the greatest one, at the most."""
    counters, greatest, behind = [0] * shards, 0, 0
    for shard in chosen:
        counters[shard] += 1
        pet_id = counters[shard] * shards + shard
        greatest = max(greatest, pet_id)
        behind = max(behind, greatest - pet_id)
    return behind


def main() -> None:
    chooser = random.Random(13)  # noqa: S311 - a simulation that gives the same figures each time
    print("| shards | offered a second | taken | 80 % offered | taken | behind, at random | behind, in turn |")
    print("|" + "---:|" * 7)
    for shards in (1, 2, 4, 8, 16):
        for limit in (1, 20, 100):
            check(shards, 2000, limit, chooser)
        row = [shards]
        for offered in (shards * LIMIT, shards * LIMIT * 8 // 10):
            row += [offered, rate(shards, offered, chooser)]
        # In turn: each of 50 execution environments goes round the shards by itself.
        turns = [itertools.count(chooser.randrange(shards)) for _ in range(50)]
        at_random = (chooser.randrange(shards) for _ in range(CREATIONS))
        row += [
            drift(shards, at_random),
            drift(shards, (next(chooser.choice(turns)) % shards for _ in range(CREATIONS))),
        ]
        print("| " + " | ".join(f"{value:,}" for value in row) + " |")
    print("\nIds are unique, pages are in order and skip nobody, and every animal is found by its id.")


if __name__ == "__main__":
    main()
