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
    def members(self) -> str:
        """The names of what is to be put back as it was."""
        if self.verdict != "different" or not self.found or not self.wanted:
            return ""
        names = sorted(self.found | self.wanted)
        return ": " + ", ".join(
            name for name in names if self.found.get(name) != self.wanted.get(name)
        )

    @property
    def pet_id(self) -> float:
        """The id of the animal that the item is or names."""
        item = self.wanted or self.found or {}
        return _number(item, "petId", _number(item, "id"))

    @property
    def phase(self) -> int:
        """When to write it: a record is removed before its animal, and put back after it."""
        if "petId" not in (self.found or self.wanted or {}):
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
        copy: The name of a copy, from a moment at which nothing was damaged.
        at_once: How many requests are under way at once.
    """

    client: Any
    table: str
    copy: str = ""
    at_once: int = 8
    written: int = 0
    """How many items have been written so far."""

    def compare_animals(
        self, moment: float, damage: Damage, now: float
    ) -> Iterator[Change]:
        """Compare animals, then the records of `Idempotency-Key`s that have not expired.

        Args:
            moment: When the table was as the copy is, in seconds since 1970.
            damage: What is to be removed.
            now: The present time.
        """
        last = self.last_id(self.copy)

        def compare(bounds: tuple[float, float]) -> list[Change]:
            was, found = (
                self._animals(self.copy, *bounds),
                self._animals(self.table, *bounds),
            )
            return [
                judge(*each, moment, is_damage=damage.includes(each[1] or {}))
                for each in _pairs(was, found)
            ]

        bounds = pairwise([*range(0, last, _IDS_AT_ONCE), last, math.inf])
        removed, again = set(), set()
        with ThreadPoolExecutor(self.at_once) as pool:
            for change in chain.from_iterable(pool.map(compare, bounds)):
                if change.verdict == "given again":
                    again.add(change.pet_id)
                is_gone = change.verdict in {"removed", "different"}
                if is_gone and damage.includes(change.found or {}):
                    removed.add(change.pet_id)
                yield change
        if removed or moment + _DAY_S > now:
            yield from self._compare_records(moment, now, removed, again)

    def _compare_records(
        self, moment: float, now: float, removed: set[float], again: set[float]
    ) -> Iterator[Change]:
        was, found = (self._scan(table, "pk") for table in (self.copy, self.table))
        for before, after in _pairs(was, found):
            is_damage = _number(after or {}, "petId") in removed
            change = judge(before, after, moment, is_damage=is_damage)
            if change.wanted and change.pet_id in again:
                change = change._replace(verdict="given again")
            if not before or _number(before, "expires") > now:
                yield change

    def compare_keys(self) -> Iterator[Change]:
        """Compare the records of API keys."""
        was, found = (self._scan(table, "hash") for table in (self.copy, self.table))
        for each in _pairs(was, found):
            yield judge_key(*each)

    def counter(self, table: str) -> dict[str, Any]:
        """Return the last id that a table has given, in DynamoDB's own JSON; empty if none."""
        answer = self.client.get_item(
            TableName=table, Key=_COUNTER, ConsistentRead=True
        )
        value: dict[str, Any] = answer.get("Item", {}).get("value", {})
        return value

    def last_id(self, table: str) -> int:
        """Return the highest id that a table has or has given."""
        last = int(self.counter(table).get("N", 0))
        return int(max(self._animals(table, last), default=last))

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

    def apply(self, changes: list[Change]) -> list[Change]:
        """Write what was compared; return what was left, because it has changed since."""
        left: list[Change] = []
        for phase in range(3):
            ids = {each.pet_id for each in left}
            due = [
                each
                for each in changes
                if each.verdict in {"missing", "different", "removed"}
                and each.phase == phase
                and each.pet_id not in ids
            ]
            with ThreadPoolExecutor(self.at_once) as pool:
                for change, is_written in zip(
                    due, pool.map(self._write, due), strict=True
                ):
                    if is_written:
                        self.written += 1
                    else:
                        left.append(change)
        return left

    def _write(self, change: Change) -> bool:
        """Make a change if the item still is as it was found; tell whether it is as wanted."""
        found, wanted = change.found or {}, change.wanted or {}
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

    def _animals(
        self, table: str, after: float, until: float = math.inf
    ) -> dict[float, Item]:
        """Read the animals with the ids above a number, and up to another."""
        pages = self.client.get_paginator("query").paginate(
            TableName=table,
            ConsistentRead=True,
            KeyConditionExpression="pk = :pet AND id > :after",
            ExpressionAttributeValues={
                ":pet": {"S": "pet"},
                ":after": {"N": str(after)},
            },
            # One more shows that no other page is needed.
            PaginationConfig={"PageSize": _IDS_AT_ONCE + 1},
        )
        items = takewhile(
            lambda item: _number(item, "id") <= until, pages.search("Items")
        )
        return {_number(item, "id"): item for item in items}

    def _scan(self, table: str, key: str) -> dict[str, Item]:
        """Read keys, or the records of `Idempotency-Key`s, by their hashes."""
        pages = self.client.get_paginator("scan").paginate(
            TableName=table, ConsistentRead=True
        )
        found = {item[key]["S"]: item for item in pages.search("Items")}
        for other in ("counter", "pet"):
            found.pop(other, None)
        return found


def judge(
    was: Item | None, found: Item | None, moment: float, *, is_damage: bool
) -> Change:
    """Say what is to become of an animal, or of a record: at least one of the two is there.

    The service never writes over an item that lasts. So if it differs from what it was at the
    moment, either somebody has damaged it, or it was deleted and its id given again: then it tells
    of another creation, after the moment. What is not certainly damage is left.
    """
    if was is None:
        return Change("removed" if is_damage else "newer", found, None)
    if found is None:
        return Change("missing", None, was)
    if found == was:
        return Change("same", found, was)
    born = _number(found, "createdAt")
    if "petId" in found:
        born = _number(found, "expires") - _DAY_S
    is_other = any(found.get(name) != was.get(name) for name in _BIRTH)
    if is_other and born >= moment - _SLACK_S and not is_damage:
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


def _pairs(
    was: dict[Any, Item], found: dict[Any, Item]
) -> Iterator[tuple[Item | None, Item | None]]:
    """Yield what two tables have under each key."""
    for key in sorted({*was, *found}):
        yield was.get(key), found.get(key)


def _number(item: Item, name: str, otherwise: float = math.nan) -> float:
    """Return a number of an item; not a number, which no comparison finds, if it has none."""
    return float(item.get(name, {}).get("N", otherwise))
