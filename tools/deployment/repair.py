"""Compare a table in use with a copy of it as it was, and put back what was damaged.

The service writes an animal, and the record of an `Idempotency-Key`, once, and its ids only rise.
So each item can be put back by itself, on condition that it still is what was compared, while
requests go on: repairs may overlap, stop anywhere and be repeated.
"""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, pairwise, takewhile
from typing import Any, NamedTuple

Item = dict[str, dict[str, Any]]
"""An item in DynamoDB's own JSON; empty if it is absent."""

WRITTEN = ("missing", "different", "removed")
"""The verdicts after which an item is written."""

_DAY_S = 86_400  # how long the record of an `Idempotency-Key` lasts
# A creation notes its time up to 10 s before it writes, and clocks differ.
_SLACK_S = 60
# Animals are one partition, which a parallel Scan would read in one segment.
IDS_AT_ONCE = 2_000
MOST_PARTS = 10_000  # a counter may be far above the last animal
_COUNTER = {"pk": {"S": "counter"}, "id": {"N": "0"}}


class Change(NamedTuple):
    """An item as it was found, and as it is to be."""

    verdict: str
    found: Item
    wanted: Item

    @property
    def members(self) -> list[str]:
        """The names of what differs."""
        names = sorted(self.found | self.wanted)
        return [name for name in names if self.found.get(name) != self.wanted.get(name)]

    @property
    def pet_id(self) -> float:
        """The id of the animal that the item is or names; of a key, not a number."""
        item = self.wanted or self.found
        return _number(item, "petId", _number(item, "id"))

    @property
    def phase(self) -> int:
        """When to write it: a record is removed before its animal, and put back after it."""
        if "petId" not in (self.wanted or self.found):
            return 1
        return 2 if self.wanted else 0


class Damage(NamedTuple):
    """The animals that are newer than the moment and themselves the damage; by default none.

    Args:
        created_by: The id of the key that added them; empty for any.
        begin, end: When they were added, in seconds since 1970, both included.
    """

    created_by: str = ""
    begin: float = 0
    end: float = 0

    def includes(self, animal: Item) -> bool:
        """Tell whether an animal is part of it."""
        is_theirs = animal.get("createdBy") == {"S": self.created_by}
        is_then = self.begin <= _number(animal, "createdAt") <= self.end
        return is_then and (is_theirs or not self.created_by)


@dataclass(slots=True)
class Repair:
    """The repair of a table.

    Args:
        client: A client of DynamoDB.
        table: The name of the table in use.
        at_once: How many requests are under way at once.
        copy: The name of a copy, from a moment at which nothing was damaged.
        written: How many items have been written so far.
    """

    client: Any
    table: str
    at_once: int
    copy: str = ""
    written: int = 0

    def compare_animals(
        self, moment: float, now: float, damage: Damage
    ) -> Iterator[Change]:
        """Compare animals, then the records of `Idempotency-Key`s.

        Args:
            moment: When the table was as the copy is, in seconds since 1970.
            now: The present time.
            damage: What is to be removed.
        """

        def read(bounds: tuple[float, float]) -> list[tuple[Item, Item]]:
            was = self._animals(self.copy, *bounds)
            return _pairs(was, self._animals(self.table, *bounds))

        last = self.last_id(self.copy)
        size = max(IDS_AT_ONCE, last // MOST_PARTS)
        steps = range(size, last, size)
        verdicts = {}
        with ThreadPoolExecutor(self.at_once) as pool:
            parts = pool.map(read, pairwise([0, *steps, math.inf]))
            for was, found in chain.from_iterable(parts):
                is_damage = damage.includes(found)
                change = judge(was, found, moment, is_damage=is_damage)
                if is_damage or change.verdict == "given again":
                    verdicts[change.pet_id] = change.verdict
                yield change
        if verdicts or moment + _DAY_S > now:  # else no record has lasted
            yield from self.compare_records("pk", moment, now, verdicts)

    def compare_records(
        self, key: str, moment: float, now: float, verdicts: dict[float, str]
    ) -> Iterator[Change]:
        """Compare those API keys, or records of `Idempotency-Key`s, that have not expired.

        Args:
            key: The name of their key.
            moment: When the table was as the copy is, in seconds since 1970.
            now: The present time.
            verdicts: On animals that are damage, or whose id was given again, by their ids.
        """
        both = (self._hashed(table, key) for table in (self.copy, self.table))
        for was, found in _pairs(*both):
            is_damage = verdicts.get(_number(found, "petId")) in WRITTEN
            change = judge(was, found, moment, is_damage=is_damage)
            if change.wanted and verdicts.get(change.pet_id) == "given again":
                change = change._replace(verdict="given again")
            if _number(was, "expires", math.inf) > now:
                yield change

    def counter(self, table: str) -> dict[str, Any]:
        """Return the last id that a table has given, in DynamoDB's own JSON; empty if none."""
        answer = self.client.get_item(
            TableName=table, Key=_COUNTER, ConsistentRead=True
        )
        value: dict[str, Any] = answer.get("Item", {}).get("value", {})
        return value

    def last_id(self, table: str) -> int:
        """Return the highest id that a table has or has given."""
        newest = self.client.query(
            TableName=table,
            ConsistentRead=True,
            KeyConditionExpression="pk = :pet",
            ExpressionAttributeValues={":pet": {"S": "pet"}},
            ScanIndexForward=False,
            Limit=1,
        )
        ids = [int(item["id"]["N"]) for item in newest["Items"]]
        return max([int(self.counter(table).get("N", 0)), *ids])

    def raise_counter(self, last: int) -> None:
        """Set the counter to an id, unless it has reached it."""
        text = {"S": self.counter(self.table).get("S", "")}  # in place of a number
        with suppress(self.client.exceptions.ConditionalCheckFailedException):
            self.client.update_item(
                TableName=self.table,
                Key=_COUNTER,
                UpdateExpression="SET #value = :last",
                ConditionExpression="attribute_not_exists(#value) OR #value < :last"
                " OR #value = :text",
                ExpressionAttributeNames={"#value": "value"},
                ExpressionAttributeValues={":last": {"N": str(last)}, ":text": text},
            )

    def apply(self, changes: list[Change]) -> int:
        """Write what was compared; return how much was left, because it has changed since."""
        left: list[float] = []
        with ThreadPoolExecutor(self.at_once) as pool:
            for phase in range(3):
                due = [
                    each
                    for each in changes
                    if each.phase == phase and each.pet_id not in left
                ]
                for change, is_done in zip(
                    due, pool.map(self._write, due), strict=True
                ):
                    self.written += is_done
                    if not is_done:
                        left.append(change.pet_id)
        return len(left)

    def _write(self, change: Change) -> bool:
        """Make a change if the item still is as it was found; tell whether it is as wanted."""
        _, found, wanted = change
        names, values, tests = {}, {}, []
        # A key may have been revoked since.
        for number, name in enumerate({*found, *wanted, "revoked"}):
            names[f"#{number}"] = name
            tests.append(f"attribute_not_exists(#{number})")
            if name in found:
                values[f":{number}"] = found[name]
                tests[-1] = f"#{number} = :{number}"
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

    def _animals(self, table: str, after: float, until: float) -> dict[Any, Item]:
        """Read the animals with the ids above a number, and up to another."""
        values = {":pet": {"S": "pet"}, ":after": {"N": str(after)}}
        items = self._items(
            table,
            "query",
            KeyConditionExpression="pk = :pet AND id > :after",
            ExpressionAttributeValues=values,
            # One more shows that no other page is needed.
            PaginationConfig={"PageSize": IDS_AT_ONCE + 1},
        )
        due = takewhile(lambda item: _number(item, "id") <= until, items)
        return {_number(item, "id"): item for item in due}

    def _hashed(self, table: str, key: str) -> dict[Any, Item]:
        """Read keys, or the records of `Idempotency-Key`s, by their hashes."""
        found = {item[key]["S"]: item for item in self._items(table, "scan")}
        for other in ("counter", "pet"):
            found.pop(other, None)
        return found

    def _items(self, table: str, operation: str, **parameters: Any) -> Iterator[Item]:
        pages = self.client.get_paginator(operation).paginate(
            TableName=table, ConsistentRead=True, **parameters
        )
        found: Iterator[Item] = pages.search("Items")
        return found


def judge(was: Item, found: Item, moment: float, *, is_damage: bool) -> Change:
    """Say what is to become of an item: at least one of the two is there.

    The service never writes over an animal, or over a record that lasts. So if it differs from what
    it was at the moment, either somebody has damaged it, or it was deleted and its id given again:
    then it tells of another creation, after the moment. What is not certainly damage is left. Of an
    API key, a revocation and an earlier expiry are kept.
    """
    if not was:
        return Change("removed" if is_damage else "newer", found, {})
    if not found:
        return Change("missing", {}, was)
    wanted, birth, lasts = was, "createdAt", 0
    if "petId" in was:
        birth, lasts = "expires", _DAY_S
    if "hash" in was:
        kept = ["revoked", "revokedBy"]
        if _number(found, "expires") < _number(was, "expires", math.inf):
            kept.append("expires")
        wanted = was | {name: found[name] for name in kept if name in found}
    if found == wanted:
        return Change("same", found, wanted)
    is_later = _number(found, birth) - lasts >= moment - _SLACK_S
    if is_later and found[birth] != was.get(birth) and not is_damage:
        return Change("given again", found, was)
    return Change("different", found, wanted)


def _pairs(was: dict[Any, Item], found: dict[Any, Item]) -> list[tuple[Item, Item]]:
    """Return what two tables have under each key."""
    keys = sorted({*was, *found})
    return [(was.get(key, {}), found.get(key, {})) for key in keys]


def _number(item: Item, name: str, otherwise: float = math.nan) -> float:
    """Return a number of an item; not a number, which no comparison finds, if it has none."""
    return float(item.get(name, {}).get("N", otherwise))
