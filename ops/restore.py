"""Put back what is missing or different in a stage's table, from a copy of the table as it was.

The service writes an animal once, the record of an `Idempotency-Key` once while it lasts, and its
ids only rise.
So each item can be put back by itself, on condition that it still is what was compared, while
requests go on: a repair may be interrupted anywhere and repeated.
"""

import json
import math
import time
from collections import Counter
from contextlib import suppress
from typing import Any, NamedTuple

from ops.stage import DeploymentError, StageName

Item = dict[str, dict[str, Any]]
"""An item in DynamoDB's own JSON; empty if there is none."""

_REPAIRS = {"pk": {"S": "repair"}, "id": {"N": "0"}}


class Change(NamedTuple):
    """An item: what became of it, how it was found, and how it was at the moment."""

    verdict: str
    found: Item
    was: Item


def restore(
    stage: StageName, copy: str, *, apply: bool = False, again: bool = False
) -> None:
    """List what was damaged in a table since COPY was made of it; with --apply, put it back."""
    outputs, client = stage.deployed(), stage.client("dynamodb")
    animals = outputs["AnimalsTableName"]
    try:
        made = client.describe_table(TableName=copy)["Table"].get("RestoreSummary", {})
        print(copy, "was restored from", made)
        table = made.get("SourceTableArn", "").rpartition("/")[2]
        if table not in outputs.values() or copy == table:
            raise DeploymentError(f"{copy} is no copy of a table of {stage.stack}")
        moment = int(made["RestoreDateTime"].timestamp())
        was, found = _read(client, copy), _read(client, table)
        # After the tables: whoever wrote what was read had noted it before.
        repairs = client.get_item(
            TableName=animals, Key=_REPAIRS, ConsistentRead=True
        ).get("Item", {})
        for began in repairs.keys() - _REPAIRS:
            if int(began) < moment < _number(repairs, began) and not again:
                raise DeploymentError(
                    "an earlier moment was restored later; if this copy has no damage: --again"
                )
        changes = _compare(was, found)
        if not apply:
            print(
                "Nothing was written: --apply does it. The copy costs money until then."
            )
            return
        # Each moment has an attribute of its own, so that no operator overwrites another's note. No
        # repair writes for longer than a day.
        client.update_item(
            TableName=animals,
            Key=_REPAIRS,
            UpdateExpression="SET #moment = :until",
            ExpressionAttributeNames={"#moment": str(moment)},
            ExpressionAttributeValues={":until": {"N": str(int(time.time()) + 86_400)}},
        )
        _raise_counter(client, animals, [*was.values(), *found.values()])
        if left := _put_back(client, table, changes):
            raise DeploymentError(
                f"{left} items are left, later ones or changed meanwhile; {copy} stays"
            )
        client.delete_table(TableName=copy)
        print(f"All is put back, and {copy} is deleted.")
    except client.exceptions.ResourceNotFoundException:
        raise DeploymentError(
            f"{copy} is not there yet, or somebody else finished; or a table is gone"
        ) from None


def _read(client: Any, table: str) -> dict[str, Item]:
    """Read all items of a table, by their keys."""
    pages = client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    return {
        str([item.get(name) for name in ("hash", "pk", "id")]): item
        for item in pages.search("Items")
    }


def _compare(was: dict[str, Item], found: dict[str, Item]) -> list[Change]:
    """Compare what two tables have under each key, and list it."""
    changes = [_judge(was.get(key, {}), found.get(key, {})) for key in was | found]
    for change in changes:
        if change.verdict != "fine":
            print(json.dumps(change._asdict(), default=str))
    print(Counter(each.verdict for each in changes))
    return changes


def _judge(was: Item, found: Item) -> Change:
    """Say what became of an item: at least one of the two is there.

    The service never writes over an animal, or over a record that lasts. So what differs was
    damaged, unless it was deleted and its id given again, or its `Idempotency-Key` sent again: then
    it is left. No client sees when an animal was created.
    """
    born = "expires" if "createdId" in was else "createdAt"
    verdict = "different"
    if found == was or (not found and 0 < _number(was, "expires") <= time.time()):
        verdict = "fine"
    elif (
        {"hash", "revoked"} <= found.keys()
        or "value" in was
        or was.get("pk") == _REPAIRS["pk"]
    ):
        verdict = "kept"
    elif not was:
        verdict = "newer"
    elif not found:
        verdict = "missing"
    elif (
        _number(found, born) > _number(was, born) > 0
        and {**found, born: was.get(born)} != was
    ):
        verdict = "later" if born == "createdAt" else "newer"
    return Change(verdict, found, was)


def _number(item: Item, name: str) -> float:
    """Return a number of an item; 0 if it has none."""
    return float(item.get(name, {}).get("N", 0))


def _raise_counter(client: Any, table: str, items: list[Item]) -> None:
    """Set the counter to the highest id of items, unless it has reached it."""
    numbers = [_number(item, name) for item in items for name in ("id", "value")]
    # A thousand creations a second would take thirty years to reach 10^12.
    last = math.ceil(max(number for number in [0, *numbers] if number < 10**12))
    with suppress(client.exceptions.ConditionalCheckFailedException):
        client.update_item(
            TableName=table,
            Key={"pk": {"S": "counter"}, "id": {"N": "0"}},
            UpdateExpression="SET #value = :last",
            ConditionExpression="attribute_not_exists(#value) OR #value < :last",
            ExpressionAttributeNames={"#value": "value"},
            ExpressionAttributeValues={":last": {"N": str(last)}},
        )


def _put_back(client: Any, table: str, changes: list[Change]) -> int:
    """Write what is missing or different, a record after its animal; return how many are left."""
    left = [each.was.get("id") for each in changes if each.verdict == "later"]
    for change in sorted(changes, key=lambda each: "createdId" in each.was):
        if (
            change.verdict in {"missing", "different"}
            and change.was.get("createdId", "") not in left
            and not _write(client, table, change.found, change.was)
        ):
            left.append(change.was.get("id"))
    return len(left)


def _write(client: Any, table: str, found: Item, was: Item) -> bool:
    """Put an item back if it still is as it was found; tell whether it was.

    Of what it may have had besides, only a revocation matters. After a response that was lost, the
    SDK's second attempt says no.
    """
    names, values, tests = {}, {}, []
    for number, name in enumerate({*was, "revoked"}):
        names[f"#{number}"] = name
        tests.append(f"attribute_not_exists(#{number})")
        if name in found:
            values[f":{number}"] = found[name]
            tests[-1] = f"#{number} = :{number}"
    try:
        client.put_item(
            TableName=table,
            Item=was,
            ConditionExpression=" AND ".join(tests),
            ExpressionAttributeNames=names,
            **({"ExpressionAttributeValues": values} if values else {}),
        )
    except client.exceptions.ConditionalCheckFailedException:
        return False
    return True
