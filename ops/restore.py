"""Put back what was damaged in a stage's table, from a copy of the table as it was.

`plan` compares the two and writes a file, which a person reads and edits; `apply` does what the
file says. The service writes each item once, and its ids only rise. So an item can be put back by
itself while requests go on, on condition that it still is as the plan found it.
"""

import json
import math
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import typer

from ops.stage import DeploymentError, StageName

app = typer.Typer(help="Put back what was damaged in a table.", no_args_is_help=True)

Item = dict[str, dict[str, Any]]
"""An item in DynamoDB's own JSON; empty if there is none."""

# One partition serves 3,000 read units a second, and one item takes 1,000 writes a second
# (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html).
_READ_UNITS_PER_SECOND = 1_500
_IDS_PER_SECOND = 1_000
# The service would take thirty years to give this id: from here up, ids are damage.
_IMPOSSIBLE_ID = 10**12
_RECORD_SECONDS = 24 * 60 * 60
_EXAMPLES = 10
_RAISE_COUNTER = r"""
aws dynamodb update-item --table-name TABLE --key '{"pk": {"S": "counter"}, "id": {"N": "0"}}' \
    --update-expression 'SET #value = :new' --expression-attribute-names '{"#value": "value"}' \
    --condition-expression 'NOT attribute_type(#value, :n) OR #value < :new OR #value >= :end' \
    --expression-attribute-values \
    '{":n": {"S": "N"}, ":new": {"N": "NEW"}, ":end": {"N": "1000000000000"}}'
"""


@app.command()
def plan(stage: StageName, copy: str) -> None:
    """Write what a table lacks, or has otherwise than COPY, a copy of it, to COPY.jsonl.

    What was created after the copy's moment has an id or key that was given again: it is another
    client's, and goes to COPY-others.jsonl.
    """
    outputs, client = stage.deployed(), stage.client("dynamodb")
    source = client.describe_table(TableName=copy)["Table"].get("RestoreSummary", {})
    table = source.get("SourceTableArn", "").rpartition("/")[2]
    if table not in outputs.values():
        raise DeploymentError(f"{copy} is no copy of a table of {stage.stack}")
    print(f"{copy} is {table} as it was at {source['RestoreDateTime']}.")
    moment = source["RestoreDateTime"].timestamp()
    key = ["hash"]
    if table == outputs["AnimalsTableName"]:
        key = ["pk", "id"]
        _check_counter(client, table, copy, moment)
    plans = Path(f"{copy}.jsonl"), Path(f"{copy}-others.jsonl")
    for path in plans:
        path.touch(0o600)
        path.chmod(0o600)  # of an earlier plan, too
    counts = Counter[str]()
    with plans[0].open("w") as mine, plans[1].open("w") as others:
        for found, was in _differences(client, table, copy, key):
            file, kind = mine, "changed" if found else "missing"
            if moment <= _created(found) != _created(was):
                file, kind = others, "another client's"
            line = {"found": found, "was": was, "table": table, "copy": copy}
            text = json.dumps(line, default=lambda value: b64encode(value).decode())
            print(text, file=file)
            counts[kind] += 1
            if counts[kind] <= _EXAMPLES:
                print(f"{kind}: {text[:500]}")
    print(f"{counts.total()} items differ: {dict(counts)}")


@app.command()
def apply(stage: StageName, file: Path) -> None:
    """Put back each item of FILE, a plan, if it still is as the plan found it."""
    outputs, client = stage.deployed(), stage.client("dynamodb")
    tables = {*outputs.values()}
    left, copy = 0, ""
    # Refuse a damaged plan before anything is written.
    for line in _lines(file, tables):
        copy = line["copy"]
    # A record of an Idempotency-Key comes after its animal.
    for is_record in (False, True):
        for line in _lines(file, tables):
            if _is_record(line["was"]) != is_record:
                continue
            reason = _put_back(client, line["table"], line["found"], line["was"])
            if reason:
                left += 1
                print(f"left, {reason}: {line}"[:500])
    if copy:
        print("If a new plan is empty: aws dynamodb delete-table --table-name", copy)
    if left:
        raise DeploymentError(
            f"{left} items are left: plan again, or decide about them."
        )


def _lines(file: Path, tables: set[str]) -> Iterator[dict[str, Any]]:
    """Read a plan, line by line; refuse a line that cannot be applied."""
    with file.open() as texts:
        for number, text in enumerate(texts, start=1):
            if not text.strip():
                continue
            try:
                line = json.loads(text, object_hook=_decode)
                is_complete = {"found", "was", "table", "copy"} <= {*line}
            except (ValueError, TypeError):
                is_complete = False
            if not is_complete:
                raise DeploymentError(f"{file}, line {number}: is no line of a plan")
            if line["table"] not in tables:
                raise DeploymentError(
                    f"{file}, line {number}: {line['table']} is no table of the stage"
                )
            yield line


def _check_counter(client: Any, table: str, copy: str, moment: float) -> None:
    """Print the counter; if it may give an id again, refuse with the command that raises it."""
    # In this order: a creation takes its id from the counter.
    highest = max(_last(client, name, "pet", "id") for name in (table, copy))
    last = _last(client, table, "counter", "value")
    last_before = _last(client, copy, "counter", "value")
    print(
        f"The counter is {last}, in the copy {last_before}; the highest id is {highest}."
    )
    new = math.ceil(max(last, last_before, highest))
    if last < last_before:
        # Before it was damaged it may have given this many ids.
        new += _IDS_PER_SECOND * math.ceil(time.time() - moment)
    if new != last:
        command = _RAISE_COUNTER.replace("TABLE", table).replace("NEW", str(new))
        raise DeploymentError(f"Ids may be given again. Run this, then plan:{command}")


def _last(client: Any, table: str, partition: str, name: str) -> float:
    """Return the last id, or value, of a partition; 0 if there is none, or it is impossible."""
    response = client.query(
        TableName=table,
        KeyConditionExpression="pk = :pk AND id < :end",
        ExpressionAttributeValues={
            ":pk": {"S": partition},
            ":end": {"N": str(_IMPOSSIBLE_ID)},
        },
        ScanIndexForward=False,
        Limit=1,
        ConsistentRead=True,
    )
    number = max([0, *(_number(item, name) for item in response["Items"])])
    return number if number < _IMPOSSIBLE_ID else 0


def _differences(
    client: Any, table: str, copy: str, key: list[str]
) -> Iterator[tuple[Item, Item]]:
    """Find the items of a copy that are missing in its table, or otherwise there.

    Left out are the counter, records of Idempotency-Keys that have expired, and keys that were
    revoked since.
    """
    pages = client.get_paginator("scan").paginate(TableName=copy, ConsistentRead=True)
    copied = pages.search("Items")
    while batch := [*islice(copied, 100)]:  # BatchGetItem takes no more keys
        items = _get(
            client, table, [{name: was[name] for name in key} for was in batch]
        )
        for was in batch:
            found = items.get(str([was[name] for name in key]), {})
            is_expired = _is_record(was) and _number(was, "expires") <= time.time()
            is_counter = was.get("pk") == {"S": "counter"}
            is_revoked = key == ["hash"] and "revoked" in found
            if not (found == was or is_counter or is_expired or is_revoked):
                yield found, was


def _get(client: Any, table: str, keys: list[Item]) -> dict[str, Item]:
    """Read items by their keys, at no more than half of what one partition serves."""
    items = {}
    request: Any = {table: {"Keys": keys, "ConsistentRead": True}}
    while request:
        response = client.batch_get_item(
            RequestItems=request, ReturnConsumedCapacity="TOTAL"
        )
        for item in response["Responses"][table]:
            items[str([item[name] for name in keys[0]])] = item
        # Keys that were throttled come back in UnprocessedKeys and cost nothing.
        consumed = response.get("ConsumedCapacity", [])
        units = sum(each["CapacityUnits"] for each in consumed)
        time.sleep(max(units, len(request[table]["Keys"])) / _READ_UNITS_PER_SECOND)
        request = response["UnprocessedKeys"]
    return items


def _put_back(client: Any, table: str, found: Item, was: Item) -> str:
    """Put an item back if it still is as it was found; return why it is left, if it is."""
    if _is_record(was) and not _has_animal(client, table, was):
        return "its animal is not there"
    names, values, tests = {}, {}, []
    # DynamoDB takes 300 operators and 4 KB: a very long item is compared in part.
    attributes = [*dict.fromkeys([*was, "revoked", *found])][:120]
    for number, name in enumerate(attributes):
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
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
            **({"ExpressionAttributeValues": values} if values else {}),
        )
    except client.exceptions.ConditionalCheckFailedException as error:
        # Another apply wrote it, or the SDK's first attempt, whose response was lost.
        if error.response.get("Item") != was:
            return "changed since the plan"
    return ""


def _has_animal(client: Any, table: str, record: Item) -> bool:
    """Tell whether the animal that was created with a record is there."""
    key = {"pk": {"S": "pet"}, "id": {"N": record.get("createdId", {}).get("N", "0")}}
    response = client.get_item(TableName=table, Key=key, ConsistentRead=True)
    # The service reads its clock for the animal, and then again for the record.
    return 0 <= _created(record) - _created(response.get("Item", {})) <= 1


def _created(item: Item) -> float:
    """Return when an item was created, in seconds since 1970; 0 or less if it does not say."""
    if _is_record(item):
        return _number(item, "expires") - _RECORD_SECONDS
    return _number(item, "createdAt")


def _number(item: Item, name: str) -> float:
    return float(item.get(name, {}).get("N", 0))


def _is_record(item: Item) -> bool:
    return str(item.get("pk", {}).get("S")).startswith("idempotency#")


def _decode(value: dict[str, Any]) -> dict[str, Any]:
    """Read a binary value, which is Base64 in JSON."""
    return {"B": b64decode(value["B"])} if isinstance(value.get("B"), str) else value
