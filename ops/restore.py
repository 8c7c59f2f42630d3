"""Put back what was damaged in a stage's table, from a copy of the table as it was.

`plan` writes what the table lacks, or has otherwise than the copy, for a person to read and edit;
`apply` does what a plan says. The service writes each item once, and its ids only rise. So an item
can be put back by itself while requests go on, on condition that it still is as the plan says.
"""

import json
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import typer

from ops.stage import DeploymentError, StageName

app = typer.Typer(help="Put back what was damaged in a table.", no_args_is_help=True)

Item = dict[str, dict[str, Any]]
"""An item in DynamoDB's own JSON; empty if there is none."""

# The SDK's client keeps ten connections. Together they read at most 1,500 items a second, half
# of what one partition serves. One item, the counter, takes 1,000 writes a second
# (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html).
_READERS = 10
_PAUSE_SECONDS = _READERS / 1_500
_IDS_PER_SECOND = 1_000
# Numbers with more digits are damage: the service would take thirty years to give such an id.
_DIGITS = 12
_RECORD_SECONDS = 24 * 60 * 60
_EXAMPLES = 10
"""How many differences of a kind are printed."""
_RAISE_COUNTER = r"""
aws dynamodb update-item --table-name TABLE --key '{"pk": {"S": "counter"}, "id": {"N": "0"}}' \
    --update-expression 'SET #value = :new' --expression-attribute-names '{"#value": "value"}' \
    --condition-expression 'NOT attribute_type(#value, :n) OR #value < :new OR #value >= :end' \
    --expression-attribute-values \
    '{":n": {"S": "N"}, ":new": {"N": "NEW"}, ":end": {"N": "1000000000000"}}'
"""


class Difference(NamedTuple):
    """An item as a table has it, and as the copy of the table has it: a line of a plan."""

    table: str
    current: Item
    copied: Item


@app.command()
def plan(stage: StageName, copy: str) -> None:
    """Write what a table lacks, or has otherwise than COPY, a copy of it, to COPY/plan.jsonl.

    What was created after the copy's moment has an id or key that was given again: it is another
    client's, and goes to COPY/others.jsonl.
    """
    if Path(copy).exists():
        raise DeploymentError(f"{copy} has an earlier plan; first: rm -r {copy}")
    outputs, client = stage.deployed(), stage.client("dynamodb")
    source = client.describe_table(TableName=copy)["Table"].get("RestoreSummary", {})
    table = source.get("SourceTableArn", "").rpartition("/")[2]
    if table not in outputs.values():
        raise DeploymentError(f"{copy} is no copy of a table of {stage.stack}")
    moment = source["RestoreDateTime"]
    print(f"{copy} is {table} as it was at {moment}.")
    key = ["hash"]
    if table == outputs["AnimalsTableName"]:
        key = ["pk", "id"]
        _check_counter(client, table, copy, moment.timestamp())
    counts = Counter[str]()
    with TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        paths = folder / "plan.jsonl", folder / "others.jsonl"
        for path in paths:
            path.touch(0o600)
        with paths[0].open("w") as mine, paths[1].open("w") as others:
            for difference in _differences(client, table, copy, key):
                file, kind = mine, "changed" if difference.current else "missing"
                created = _created(difference.current)
                if moment.timestamp() <= created != _created(difference.copied):
                    file, kind = others, "another client's"
                line = json.dumps(
                    difference._asdict(),
                    default=lambda value: b64encode(value).decode(),
                )
                print(line, file=file)
                counts[kind] += 1
                if counts[kind] <= _EXAMPLES:
                    print(f"{kind}: {line[:500]}")
        # A plan that exists is complete.
        folder.rename(copy)
    print(f"{copy}: {counts.total()} items differ: {dict(counts)}")


@app.command()
def apply(stage: StageName, file: Path) -> None:
    """Put back each item of FILE, a plan, if it is unchanged since the plan."""
    tables, client = {*stage.deployed().values()}, stage.client("dynamodb")
    left = 0
    # A record of an Idempotency-Key comes after its animal.
    for is_record in (False, True):
        for difference in _read(file, tables):
            if _is_record(difference.copied) != is_record:
                continue
            if not _put_back(client, *difference):
                left += 1
                print(f"left: {difference}"[:500])
    copy = file.absolute().parent.name
    print(f"When a new plan is empty: aws dynamodb delete-table --table-name {copy}")
    if left:
        raise DeploymentError(
            f"{left} items are left: they have changed since the plan, or are records whose "
            "animal is not there. Plan again, or decide about them."
        )


def _check_counter(client: Any, table: str, copy: str, moment: float) -> None:
    """Refuse a counter that may give an id again, with the command that raises it."""
    key = {"pk": {"S": "counter"}, "id": {"N": "0"}}
    # In this order: a creation takes its id from the counter.
    highest = max(_highest_id(client, name) for name in (table, copy))
    counter = _number(_get(client, table, key), "value")
    copied = _number(_get(client, copy, key), "value")
    print(f"The counter is {counter}, in the copy {copied}; the highest id: {highest}.")
    new = max(counter, copied, highest)
    if counter < copied:
        # Before it was damaged it may have given this many ids.
        new += _IDS_PER_SECOND * int(time.time() - moment + 1)
    if new != counter:
        command = _RAISE_COUNTER.replace("TABLE", table).replace("NEW", str(new))
        raise DeploymentError(f"Ids may be given again. Run this, then plan:{command}")


def _highest_id(client: Any, table: str) -> int:
    """Return the highest id of the animals in a table, without those that are damage."""
    response = client.query(
        TableName=table,
        KeyConditionExpression="pk = :pk AND id < :end",
        ExpressionAttributeValues={
            ":pk": {"S": "pet"},
            ":end": {"N": str(10**_DIGITS)},
        },
        ScanIndexForward=False,
        Limit=1,
        ConsistentRead=True,
    )
    return max([0, *(_number(item, "id") for item in response["Items"])])


def _differences(
    client: Any, table: str, copy: str, key: list[str]
) -> Iterator[Difference]:
    """Find the items of a copy that its table lacks, or has otherwise.

    Left out are the counter, records of Idempotency-Keys that have expired, and keys that were
    revoked since.
    """
    pages = client.get_paginator("scan").paginate(TableName=copy, ConsistentRead=True)
    with ThreadPoolExecutor(_READERS) as readers:
        for page in pages:
            keys = [{name: item[name] for name in key} for item in page["Items"]]
            found = readers.map(partial(_get, client, table), keys)
            for copied, current in zip(page["Items"], found, strict=True):
                is_counter = copied.get("pk") == {"S": "counter"}
                ends = _number(copied, "expires")
                is_expired = _is_record(copied) and ends <= time.time()
                is_revoked = key == ["hash"] and "revoked" in current
                if not (current == copied or is_counter or is_expired or is_revoked):
                    yield Difference(table, current, copied)


def _get(client: Any, table: str, key: Item) -> Any:
    """Read an item, after a pause that leaves half of a partition's reads to the service."""
    time.sleep(_PAUSE_SECONDS)
    response = client.get_item(TableName=table, Key=key, ConsistentRead=True)
    return response.get("Item", {})


def _read(file: Path, tables: set[str]) -> Iterator[Difference]:
    """Read a plan line by line; refuse a line that cannot be applied."""
    with file.open() as lines:
        for line in lines:
            try:
                difference = Difference(**json.loads(line, object_hook=_decode))
            except (ValueError, TypeError):
                raise DeploymentError(f"no line of a plan: {line[:500]}") from None
            if difference.table not in tables:
                raise DeploymentError(f"{difference.table} is no table of the stage")
            yield difference


def _put_back(client: Any, table: str, current: Item, copied: Item) -> bool:
    """Put an item back if it is unchanged since the plan; tell whether it now equals the copy."""
    if _is_record(copied) and not _has_animal(client, table, copied):
        return False
    names, values, tests = {}, {}, []
    # DynamoDB takes 300 operators and 4 KB: a very long item is compared in part.
    attributes = [*dict.fromkeys([*copied, "revoked", *current])][:120]
    for number, name in enumerate(attributes):
        names[f"#{number}"] = name
        tests.append(f"attribute_not_exists(#{number})")
        if name in current:
            values[f":{number}"] = current[name]
            tests[-1] = f"#{number} = :{number}"
    try:
        client.put_item(
            TableName=table,
            Item=copied,
            ConditionExpression=" AND ".join(tests),
            ExpressionAttributeNames=names,
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
            **({"ExpressionAttributeValues": values} if values else {}),
        )
    except client.exceptions.ConditionalCheckFailedException as error:
        # Another apply wrote it, or the SDK's first attempt, whose response was lost.
        return bool(error.response.get("Item") == copied)
    return True


def _has_animal(client: Any, table: str, record: Item) -> bool:
    """Tell whether the animal that was created with a record is there."""
    created_id = {"N": str(_number(record, "createdId"))}
    animal = _get(client, table, {"pk": {"S": "pet"}, "id": created_id})
    # The service reads its clock for the animal, and then again for the record.
    return 0 <= _created(record) - _created(animal) <= 1


def _created(item: Item) -> int:
    """Return when an item was created, in seconds since 1970; 0 or less if it does not say."""
    if _is_record(item):
        return _number(item, "expires") - _RECORD_SECONDS
    return _number(item, "createdAt")


def _number(item: Item, name: str) -> int:
    """Return a number of an item; 0 if it has none that the service would write."""
    text = item.get(name, {}).get("N", "")
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else 0


def _is_record(item: Item) -> bool:
    return str(item.get("pk", {}).get("S")).startswith("idempotency#")


def _decode(value: dict[str, Any]) -> dict[str, Any]:
    """Read a binary value, which is Base64 in JSON."""
    return {"B": b64decode(value["B"])} if isinstance(value.get("B"), str) else value
