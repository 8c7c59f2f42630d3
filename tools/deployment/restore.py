"""Put back what is missing or different in a stage's table, from a copy of the table as it was.

The service writes an animal, and the record of an `Idempotency-Key`, once, and its ids only rise.
So each item can be put back by itself, on condition that it still is what was compared, while
requests go on: a repair may be interrupted anywhere and repeated.
"""

import json
import math
import re
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple

import typer

from tools.deployment.stage import DeploymentError, Stage, StageName

Item = dict[str, dict[str, Any]]
"""An item in DynamoDB's own JSON; empty if there is none."""
Moment = Annotated[datetime, typer.Option(formats=["%Y-%m-%dT%H:%M:%S%z"])]

_REPAIRS = {"pk": {"S": "repair"}, "id": {"N": "0"}}


class Change(NamedTuple):
    """An item: what became of it, how it was found, and how it was at the moment."""

    verdict: str
    found: Item
    was: Item


def restore(
    stage: StageName,
    at: Moment,
    table: Literal["AnimalsTable", "ApiKeysTable"] = "AnimalsTable",
    *,
    apply: bool = False,
    again: Moment | None = None,
) -> None:
    """List what was damaged in a table after a moment; with --apply, put it back."""
    moment = at.astimezone(UTC)
    text = moment.isoformat()
    stage.announce()
    outputs, client = stage.deployed(), stage.client("dynamodb")
    animals, name = outputs["AnimalsTableName"], outputs[f"{table}Name"]
    copy = f"{stage.stack}-{table}-copy-{moment:%Y%m%dT%H%M%SZ}"
    try:
        repairs = client.get_item(
            TableName=animals, Key=_REPAIRS, ConsistentRead=True
        ).get("Item", {})
        for until, since in repairs.items():
            if since.get("S", "pk") < text < until and again != at:
                raise DeploymentError(
                    f"a repair from {since['S']} wrote before {until}: the copy may have the "
                    "damage. If it has not, say so: --again and the moment"
                )
        _await_copy(stage, client, name, copy, moment)
        changes = _compare(_read(client, copy), _read(client, name))
    except client.exceptions.ResourceNotFoundException:
        raise DeploymentError(
            f"{copy} is gone: somebody else finished; or the table itself is"
        ) from None
    if not apply:
        print(f"Nothing was written: --apply does it. {copy} costs money until then.")
        return
    # A repair writes for less than an hour.
    until = datetime.fromtimestamp(time.time() + 3600, UTC).isoformat()
    noted = repairs | _REPAIRS | {until: {"S": text}}
    if not _write(client, animals, repairs, noted):
        raise DeploymentError("a repair has begun since: look again")
    _raise_counters(client, name, changes)
    if left := _put_back(client, name, changes):
        raise DeploymentError(
            f"{left} items are left, later ones or changed meanwhile; {copy} stays"
        )
    client.delete_table(TableName=copy)
    print(f"All is put back, and {copy} is deleted.")


def _await_copy(
    stage: Stage, client: Any, name: str, copy: str, moment: datetime
) -> None:
    """Let DynamoDB make the copy, or find it: its name proves nothing."""
    errors = client.exceptions
    with suppress(errors.TableAlreadyExistsException, errors.TableInUseException):
        client.restore_table_to_point_in_time(
            SourceTableName=name, TargetTableName=copy, RestoreDateTime=moment
        )
    for _ in range(2160):  # 12 hours
        print(f"waiting for {copy}", flush=True)
        stage.sleep(20)  # a new table is not visible at once
        table = client.describe_table(TableName=copy)["Table"]
        if table["TableStatus"] != "CREATING":
            break
    made = table.get("RestoreSummary", {})
    source = made.get("SourceTableArn", "").rpartition("/")[2]
    state = table["TableStatus"], source, made.get("RestoreDateTime")
    if state != ("ACTIVE", name, moment):
        raise DeploymentError(f"{copy} is of no use: {state}")


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
        if change.verdict not in {"fine", "newer"}:
            print(json.dumps(change._asdict(), default=str))
    print(Counter(each.verdict for each in changes))
    return changes


def _judge(was: Item, found: Item) -> Change:
    """Say what became of an item: at least one of the two is there.

    The service never writes over an animal, or over a record that lasts. So what differs was
    damaged, unless it was deleted and its id given again, or its `Idempotency-Key` sent again: then
    it is later. No client sees when an animal was created.
    """
    born = "expires" if "petId" in was else "createdAt"
    verdict = "different"
    if found == was or 0 < _number(was, "expires") <= time.time():
        verdict = "fine"
    elif "revoked" in found or "value" in was or was.get("pk") == _REPAIRS["pk"]:
        verdict = "kept"
    elif not was:
        # A key, or not the service's: its ids are whole, and below 10^12.
        verdict = "newer" if re.search(r"'\d{1,12}'", str(found.get("id"))) else "new"
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


def _raise_counters(client: Any, table: str, changes: list[Change]) -> None:
    """Set each counter to the highest id, unless it has reached it."""
    items = [item for _, *both in changes for item in both]
    numbers = [_number(item, name) for item in items for name in ("id", "value")]
    # A thousand creations a second would take thirty years to reach 10^12.
    last = math.ceil(max(number for number in [0, *numbers] if number < 10**12))
    for counter in [each.was for each in changes if "value" in each.was]:
        with suppress(client.exceptions.ConditionalCheckFailedException):
            client.update_item(
                TableName=table,
                Key={name: counter[name] for name in ("pk", "id")},
                UpdateExpression="SET #value = :last",
                ConditionExpression="attribute_not_exists(#value) OR #value < :last",
                ExpressionAttributeNames={"#value": "value"},
                ExpressionAttributeValues={":last": {"N": str(last)}},
            )


def _put_back(client: Any, table: str, changes: list[Change]) -> int:
    """Write what is missing or different, a record after its animal; return how many are left."""
    left = [each.was.get("id") for each in changes if each.verdict == "later"]
    for change in sorted(changes, key=lambda each: "petId" in each.was):
        if (
            change.verdict in {"missing", "different"}
            and change.was.get("petId", "") not in left
            and not _write(client, table, change.found, change.was)
        ):
            left.append(change.was.get("id"))
    return len(left)


def _write(client: Any, table: str, found: Item, was: Item) -> bool:
    """Put an item back if it still is as it was found; tell whether it was.

    After a response that was lost, the SDK's second attempt says no.
    """
    names, values, tests = {}, {}, []
    for number, name in enumerate({*found, *was, "revoked"}):
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
