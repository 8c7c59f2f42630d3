"""What clients were told of their creations, held against what the store has in the end."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.reliability.report import Row

Pet = dict[str, Any]


@dataclass(slots=True)
class Creation:
    """One creation, known by its name, which no other has.

    Args:
        new: The animal that was sent.
        row: Where its failures count.
        acknowledged: The animal of each 201 answer that it got.
        keyed: Whether all requests carried the same Idempotency-Key.
    """

    new: Pet
    row: Row
    acknowledged: list[Pet]
    keyed: bool


class Ledger:
    """Every creation of a run."""

    def __init__(self) -> None:
        self._creations: list[Creation] = []

    def open(self, new: Pet, row: Row, *, keyed: bool) -> Creation:
        """Enter a creation before its first request."""
        creation = Creation(new, row, [], keyed)
        self._creations.append(creation)
        return creation

    def audit(self, stored: Iterable[Pet]) -> Counter[str]:
        """Count losses and doubles in the rows of the creations.

        Args:
            stored: Every animal of the store, read past the service.

        Returns:
            How many creations were acknowledged, and how many not but are there all the same.
        """
        by_id: dict[int, Pet] = {}
        ids: dict[str, list[int]] = defaultdict(list)
        for pet in stored:
            by_id[pet["id"]] = pet
            ids[pet["name"]].append(pet["id"])
        counts: Counter[str] = Counter()
        owners: dict[int, str] = {}
        for creation in self._creations:
            counts["acknowledged" if creation.acknowledged else "not acknowledged"] += 1
            if not creation.acknowledged and ids.get(creation.new["name"]):
                counts["not acknowledged, but there"] += 1
            self._audit(creation, by_id, ids, owners)
        return counts

    def _audit(
        self, creation: Creation, by_id: Mapping[int, Pet], ids: Mapping[str, list[int]], owners: dict[int, str]
    ) -> None:
        name, row = creation.new["name"], creation.row
        there = ids.get(name, [])
        for pet in creation.acknowledged:
            row.check(by_id.get(pet["id"]) == pet, f"{pet} was acknowledged, there is {by_id.get(pet['id'])}", "losses")
            row.check(pet == {"id": pet["id"], **creation.new}, f"{creation.new} was answered by {pet}")
            owner = owners.setdefault(pet["id"], name)
            row.check(owner == name, f"id {pet['id']} was given to {owner} and to {name}", "doubles")
        row.check(len(there) <= 1, f"{name} is there {len(there)} times: {there}", "doubles")
        if creation.keyed:
            row.check(
                len({pet["id"] for pet in creation.acknowledged}) <= 1,
                f"{name} was acknowledged as {creation.acknowledged}",
                "doubles",
            )
