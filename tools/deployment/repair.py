"""Compare a table in use with a copy of it as it was, and put back what was damaged.

The service writes an animal, and the record of an `Idempotency-Key`, once, and its ids only rise.
So each item can be put back by itself, on condition that it still is what was compared, while
requests go on: repairs may overlap, stop anywhere and be repeated.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal, NamedTuple

Item = dict[str, dict[str, Any]]
"""An item in DynamoDB's own JSON."""

Verdict = Literal["same", "missing", "different", "newer", "removed", "given again"]

_DAY_S = 86_400  # how long the record of an `Idempotency-Key` lasts
# A creation notes its time up to 10 s before it writes, and clocks differ.
_SLACK_S = 60
# Animals are one partition, which a parallel Scan would read in one segment.
_IDS_AT_ONCE = 2_000
_COUNTER = {"pk": {"S": "counter"}, "id": {"N": "0"}}
_BIRTH = ("createdBy", "createdAt", "token", "expires")


class Change(NamedTuple):
    """An item as it was found, and as it is to be; None if it is absent."""

    verdict: Verdict
    found: Item | None
    wanted: Item | None

    @property
    def members(self) -> list[str]:
        """The names of what differs."""
        found, wanted = self.found or {}, self.wanted or {}
        names = sorted({*found, *wanted})
        return [name for name in names if found.get(name) != wanted.get(name)]


@dataclass(frozen=True, slots=True)
class Damage:
    """The animals that are newer than the moment and themselves the damage; by default none.

    Args:
        created_by: The id of the key that added them.
        between: When they were added, in seconds since 1970, both ends included.
    """

    created_by: str = ""
    between: tuple[float, float] | None = None

    def includes(self, animal: Item) -> bool:
        """Tell whether an animal is part of it."""
        if not (self.created_by or self.between):
            return False
        if self.created_by and animal.get("createdBy") != {"S": self.created_by}:
            return False
        begin, end = self.between or (0, math.inf)
        return begin <= _number(animal, "createdAt") <= end


@dataclass(slots=True)
class Comparison:
    """How many items are what, and those that are neither the same nor newer."""

    counts: Counter[str] = field(default_factory=Counter)
    changes: list[Change] = field(default_factory=list)
    highest: int = 0
    """The highest id in either table."""

    def add(self, changes: Iterable[Change]) -> None:
        """Add what was compared."""
        for change in changes:
            self.counts[change.verdict] += 1
            if change.verdict not in {"same", "newer"}:
                self.changes.append(change)


@dataclass(slots=True)
class Repair:
    """The repair of a table.

    Args:
        client: A client of DynamoDB.
        table: The name of the table in use.
        copy: The name of a copy, from a moment at which nothing was damaged.
        say: Takes a line about the progress.
        at_once: How many requests are under way at once.
    """

    client: Any
    table: str
    copy: str = ""
    say: Callable[[str], None] = print
    at_once: int = 8
    written: int = 0
    """How many items have been written so far."""

    def compare_animals(self, moment: float, damage: Damage, now: float) -> Comparison:
        """Compare animals, and the records of `Idempotency-Key`s that have not expired.

        Args:
            moment: When the table was as the copy is, in seconds since 1970.
            damage: What is to be removed.
            now: The present time.
        """
        last = self.counter(self.copy)
        comparison = Comparison(highest=last)

        def compare(after: int) -> list[Change]:
            """Judge the animals of some ids, or all beyond the copy's counter."""
            count = min(_IDS_AT_ONCE, last - after) or None
            was = self.animals(self.copy, after, count)
            found = self.animals(self.table, after, count)
            return [
                judge(was.get(number), found.get(number), moment, damage)
                for number in sorted({*was, *found})
            ]

        starts = [*range(0, last, _IDS_AT_ONCE), last]
        with ThreadPoolExecutor(self.at_once) as pool:
            for after, changes in zip(starts, pool.map(compare, starts), strict=True):
                comparison.add(changes)
                for change in changes[-1:]:
                    comparison.highest = max(comparison.highest, _id(change))
                self.say(f"compared the ids above {after} (of {last})")
        removed = {
            each.found["id"]["N"]
            for each in comparison.changes
            if each.found and damage.includes(each.found)
        }
        again = {
            _id(each) for each in comparison.changes if each.verdict == "given again"
        }
        comparison.add(self._records_of(removed))
        if moment + _DAY_S > now:
            comparison.add(self._lost_records(moment, now, again))
        return comparison

    def compare_keys(self) -> Comparison:
        """Compare the records of API keys."""
        was, found = (
            {item["hash"]["S"]: item for item in self._scan(name)}
            for name in (self.copy, self.table)
        )
        comparison = Comparison()
        for digest in sorted({*was, *found}):
            comparison.add([judge_key(was.get(digest), found.get(digest))])
        return comparison

    def counter(self, table: str) -> int:
        """Return the last id that a table has given; 0 if its counter says none."""
        return int(self._counter(table).get("N", 0))

    def _counter(self, table: str) -> dict[str, Any]:
        answer = self.client.get_item(
            TableName=table, Key=_COUNTER, ConsistentRead=True
        )
        value: dict[str, Any] = answer.get("Item", {}).get("value", {})
        return value

    def raise_counter(self, last: int) -> bool:
        """Set the counter to an id, unless it has reached it; tell whether it was set."""
        condition = "attribute_not_exists(#value) OR #value < :last"
        values: Item = {":last": {"N": str(last)}}
        found = self._counter(self.table)
        if found and "N" not in found:
            condition += " OR #value = :found"
            values[":found"] = found
        try:
            self.client.update_item(
                TableName=self.table,
                Key=_COUNTER,
                UpdateExpression="SET #value = :last",
                ConditionExpression=condition,
                ExpressionAttributeNames={"#value": "value"},
                ExpressionAttributeValues=values,
            )
        except self.client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def animals(
        self, table: str, after: int, count: int | None = None
    ) -> dict[int, Item]:
        """Read the animals with the ids above a number: that many ids, or all."""
        pages = self.client.get_paginator("query").paginate(
            TableName=table,
            ConsistentRead=True,
            KeyConditionExpression="pk = :pet AND id > :after",
            ExpressionAttributeValues={
                ":pet": {"S": "pet"},
                ":after": {"N": str(after)},
            },
            PaginationConfig={"PageSize": _IDS_AT_ONCE, "MaxItems": count},
        )
        found = {}
        for item in pages.search("Items"):
            number = int(item["id"]["N"])
            if not count or number <= after + count:
                found[number] = item
        return found

    def apply(self, comparison: Comparison) -> list[Change]:
        """Write what was compared; return what was left, because it has changed since.

        The counter is raised first. A record is removed before its animal, and put back after it.
        """
        if comparison.highest:
            self.raise_counter(comparison.highest)
        left: list[Change] = []
        for _, phase in groupby(sorted(comparison.changes, key=_phase), _phase):
            ids = {_id(each) for each in left}
            changes = [
                each
                for each in phase
                if each.verdict != "given again" and _id(each) not in ids
            ]
            with ThreadPoolExecutor(self.at_once) as pool:
                results = pool.map(self._write, changes)
                for change, is_written in zip(changes, results, strict=True):
                    if is_written:
                        self.written += 1
                    else:
                        left.append(change)
        return left

    def _write(self, change: Change) -> bool:
        """Make a change if the item still is as it was found; tell whether it is as wanted."""
        found, wanted = change.found or {}, change.wanted or {}
        names, values, tests = {}, {}, []
        for number, name in enumerate(found | wanted):
            names[f"#{number}"] = name
            if name in found:
                values[f":{number}"] = found[name]
                tests.append(f"#{number} = :{number}")
            else:
                tests.append(f"attribute_not_exists(#{number})")
        request: dict[str, Any] = {
            "TableName": self.table,
            "ConditionExpression": " AND ".join(tests),
            "ExpressionAttributeNames": names,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if values:
            request["ExpressionAttributeValues"] = values
        try:
            if wanted:
                self.client.put_item(Item=wanted, **request)
            else:
                key = {"pk": found["pk"], "id": found["id"]}
                self.client.delete_item(Key=key, **request)
        except self.client.exceptions.ConditionalCheckFailedException as error:
            # The SDK's own retry after a lost response, or another repair.
            return bool(error.response.get("Item", {}) == wanted)
        return True

    def _records_of(self, removed: set[str]) -> Iterator[Change]:
        """Find the records that name animals which are to be removed."""
        if removed:
            for item in self._scan(self.table):
                if item.get("petId", {}).get("N") in removed:
                    yield Change("removed", item, None)

    def _lost_records(
        self, moment: float, now: float, again: set[int]
    ) -> Iterator[Change]:
        """Compare the copy's records that have not expired."""
        records = [
            item
            for item in self._scan(self.copy)
            if "petId" in item and _number(item, "expires") > now
        ]

        def compare(was: Item) -> Change:
            answer = self.client.get_item(
                TableName=self.table,
                Key={"pk": was["pk"], "id": was["id"]},
                ConsistentRead=True,
            )
            change = judge(was, answer.get("Item"), moment, Damage())
            if _id(change) in again and change.verdict in {"missing", "different"}:
                return change._replace(verdict="given again")
            return change

        with ThreadPoolExecutor(self.at_once) as pool:
            yield from pool.map(compare, records)

    def _scan(self, table: str) -> Iterator[Item]:
        pages = self.client.get_paginator("scan").paginate(
            TableName=table, ConsistentRead=True
        )
        yield from pages.search("Items")


def judge(
    was: Item | None, found: Item | None, moment: float, damage: Damage
) -> Change:
    """Say what is to become of an animal, or of a record: at least one of the two is there.

    The service never writes over an item that lasts. So if it differs from what it was at the
    moment, either somebody has damaged it, or it was deleted and its id given again: then it tells
    of another creation, after the moment. What is not certainly damage is left.
    """
    if was is None:
        is_damage = found and damage.includes(found)
        return Change("removed" if is_damage else "newer", found, None)
    if found is None:
        return Change("missing", None, was)
    if found == was:
        return Change("same", found, was)
    born = _number(found, "createdAt")
    if "petId" in found:
        born = _number(found, "expires") - _DAY_S
    is_other = any(found.get(name) != was.get(name) for name in _BIRTH)
    if is_other and born >= moment - _SLACK_S and not damage.includes(found):
        return Change("given again", found, was)
    return Change("different", found, was)


def judge_key(was: Item | None, found: Item | None) -> Change:
    """Say what is to become of a key: a revocation and an earlier expiry stay."""
    if was is None:
        return Change("newer", found, None)
    if found is None:
        return Change("missing", None, was)
    wanted = dict(was)
    for name in ("revoked", "revokedBy"):
        if name in found:
            wanted[name] = found[name]
    if _number(found, "expires") < _number(was, "expires", math.inf):
        wanted["expires"] = found["expires"]
    return Change("same" if found == wanted else "different", found, wanted)


def _phase(change: Change) -> int:
    """Return when a change is to be written: records are removed first, and put back last."""
    if "petId" not in (change.found or change.wanted or {}):
        return 1
    return 2 if change.wanted else 0


def _id(change: Change) -> int:
    """Return the id of the animal that an item is or names; 0 for a key."""
    item = change.wanted or change.found or {}
    return int(item.get("petId", item.get("id", {"N": "0"}))["N"])


def _number(item: Item, name: str, otherwise: float = math.nan) -> float:
    """Return a number of an item; not a number, which no comparison finds, if it has none."""
    return float(item.get(name, {}).get("N", otherwise))
