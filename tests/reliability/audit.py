"""Compare what clients were told of their creations with what the store has in the end."""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.reliability.report import Row

Pet = dict[str, Any]


@dataclass(slots=True)
class Creation:
    """One creation, known by its name, which no other has.

    Args:
        new: The animal that was sent.
        row: Where its failures count.
        keyed: Whether all requests carried the same Idempotency-Key.
        acknowledged: The animal of each 201 response.
        written: Whether the animal is there though its first request got no 201.
    """

    new: Pet
    row: Row
    keyed: bool
    acknowledged: list[Pet] = field(default_factory=list)
    written: bool = False


class Audit:
    """Every creation of a run; threads may add to it at the same time."""

    def __init__(self) -> None:
        self.creations: list[Creation] = []
        self._lock = threading.Lock()

    def open(self, new: Pet, row: Row, *, keyed: bool) -> Creation:
        """Enter a creation before its first request."""
        creation = Creation(new, row, keyed)
        with self._lock:
            self.creations.append(creation)
        return creation

    def close(self, stored: Iterable[Pet]) -> str:
        """Count losses and doubles in the rows of the creations; sum up what became of these.

        Args:
            stored: Every animal of the store, read past the service.
        """
        by_id: dict[int, Pet] = {}
        ids: dict[str, list[int]] = defaultdict(list)
        for pet in stored:
            by_id[pet["id"]] = pet
            ids[pet["name"]].append(pet["id"])
        counts: Counter[str] = Counter()
        owners: dict[int, str] = {}
        for creation in self.creations:
            name, row, there = creation.new["name"], creation.row, ids.get(creation.new["name"], [])
            counts["acknowledged" if creation.acknowledged else "not acknowledged"] += 1
            creation.written |= bool(there) and not creation.acknowledged
            counts["not acknowledged, but there"] += bool(there) and not creation.acknowledged
            for pet in creation.acknowledged:
                found = by_id.get(pet["id"])
                row.check(found == pet == {"id": pet["id"], **creation.new}, f"told {pet}, there is {found}", "losses")
                owner = owners.setdefault(pet["id"], name)
                row.check(owner == name, f"id {pet['id']} was given to {owner} and to {name}", "doubles")
            row.check(len(there) <= 1, f"{name} is there {len(there)} times: {there}", "doubles")
            told = {pet["id"] for pet in creation.acknowledged}
            row.check(len(told) <= 1 or not creation.keyed, f"{name} was acknowledged as {told}", "doubles")
        return ", ".join(f"{number:,} {what}" for what, number in counts.items())
