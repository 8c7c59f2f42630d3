"""Simulate the order in which animals appear, for docs/scale.md: `python -m benchmarks.shards`."""

import random

_ENVIRONMENTS, _SECONDS, _BURST, _POLL_SECONDS = 50, 20, 20, 0.1
_RATE = 800
"""Creations a second for each shard: 80 % of what it takes."""
_RETRIED = 0.001
"""The share of creations that are retried."""


def create(shards: int, chooser: random.Random) -> list[tuple[float, int]]:
    """Return when each animal appears, in seconds, and its id: the earliest first."""
    begun: list[float] = []
    for size in (1, _BURST):  # half of the creations come in bursts
        moment = 0.0
        while (
            moment := moment + chooser.expovariate(_RATE * shards / 2 / size)
        ) < _SECONDS:
            begun += [moment] * size
    turns = [chooser.randrange(shards) for _ in range(_ENVIRONMENTS)]
    counters, appeared = [0] * shards, []
    for moment in sorted(begun):
        environment = chooser.randrange(_ENVIRONMENTS)
        shard = turns[environment] = (turns[environment] + 1) % shards
        counters[shard] += 1
        until_written = chooser.expovariate(1 / 0.004)
        if chooser.random() < _RETRIED:
            until_written += chooser.uniform(0.05, 2)
        appeared.append((moment + until_written, counters[shard] * shards + shard))
    return sorted(appeared)


def disorder(appeared: list[tuple[float, int]]) -> tuple[int, int]:
    """Return the furthest an id was behind the greatest, and how many animals are missed.

    A client that keeps asking for ids above the greatest that it knows misses them.
    """
    known = greatest = behind = missed = 0
    asks = _POLL_SECONDS
    for moment, pet_id in appeared:
        while asks < moment:
            known, asks = greatest, asks + _POLL_SECONDS
        missed += pet_id < known
        greatest = max(greatest, pet_id)
        behind = max(behind, greatest - pet_id)
    return behind, missed


if __name__ == "__main__":
    for shards in (1, 2, 4, 8, 16):
        appeared = create(shards, random.Random(1))  # noqa: S311 - the same each time
        behind, missed = disorder(appeared)
        print(f"| {shards} | {len(appeared):,} | {behind:,} | {missed:,} |")
