"""Put back what was damaged in a stage's table, from a copy of the table as it was.

`plan` compares the two and writes a file, which a person reads and edits; `apply` does what the
file says. The service writes each item once, and its ids only rise. So an item can be put back by
itself while requests go on, on condition that it still is as the plan found it.
"""

import json
import math
import os
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator
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
_EXAMPLES = 10
_PUT_BACK = "as they were"
_RECORD_SECONDS = 24 * 60 * 60
_RAISE_COUNTER = r"""
aws dynamodb update-item --table-name TABLE --key '{"pk": {"S": "counter"}, "id": {"N": "0"}}' \
    --update-expression 'SET #value = :new' --expression-attribute-names '{"#value": "value"}' \
    --condition-expression 'NOT attribute_type(#value, :n) OR #value < :new OR #value >= :end' \
    --expression-attribute-values \
    '{":n": {"S": "N"}, ":new": {"N": "NEW"}, ":end": {"N": "1000000000000"}}'
"""
_COUNTER = {"pk": {"S": "counter"}, "id": {"N": "0"}}


@app.command()
def plan(stage: StageName, copy: str) -> None:
    """Write what a table lacks, or has otherwise than COPY, a copy of it, to COPY.jsonl.

    What was created after the copy's moment has an id or key that was given again: it is another
    client's, and goes to COPY-others.jsonl.
    """
    outputs, client = stage.deployed(), stage.client("dynamodb")
    source = client.describe_table(TableName=copy)["Table"].get("RestoreSummary", {})
    table = source.get("SourceTableArn", "").rpartition("/")[2]
    if table not in outputs.values() or copy == table:
        raise DeploymentError(f"{copy} is no copy of a table of {stage.stack}")
    print(f"{copy} is {table} as it was at {source['RestoreDateTime']:%c %Z}.")
    moment = source["RestoreDateTime"].timestamp()
    key = ["hash"]
    if table == outputs["AnimalsTableName"]:
        key = ["pk", "id"]
        _check_counter(client, table, copy, moment)
    counts = Counter[str]()
    with (
        open(f"{copy}.jsonl", "w", opener=_open_private) as mine,
        open(f"{copy}-others.jsonl", "w", opener=_open_private) as others,
    ):
        for found, was in _differences(client, table, copy, key):
            line = {"found": found, "was": was, "table": table, "copy": copy}
            text = json.dumps(line, default=_encode)
            file, kind = mine, "changed" if found else "missing"
            if moment <= _created(found) != _created(was):
                file, kind = others, "another client's"
            print(text, file=file)
            counts[kind] += 1
            if counts[kind] <= _EXAMPLES:
                print(f"{kind}: {text[:500]}")
    print(f"{counts.total()} items differ: {dict(counts)}")


@app.command()
def apply(stage: StageName, file: Path) -> None:
    """Put back each item of FILE, a plan, if it still is as the plan found it."""
    tables, client = stage.deployed().values(), stage.client("dynamodb")
    counts, copy = Counter[str](), ""
    for line in _read(file):
        if line["table"] not in tables:
            raise DeploymentError(f"{line['table']} is no table of {stage.stack}")
        result = _put_back(client, line["table"], line["found"], line["was"])
        if result != _PUT_BACK:
            print(f"left, {result}: {json.dumps(line, default=_encode)[:500]}")
        counts[result] += 1
        copy = line["copy"]
    print(f"{counts.total()} items: {dict(counts)}")
    print("If a new plan is empty: aws dynamodb delete-table --table-name", copy)
    if counts.keys() - {_PUT_BACK}:
        raise DeploymentError("Some items are left: plan again, or decide about them.")


def _check_counter(client: Any, table: str, copy: str, moment: float) -> None:
    """Print the counter; if it may give an id again, refuse with the command that raises it."""
    # In this order: a creation takes its id from the counter.
    highest = max(_highest_id(client, table), _highest_id(client, copy))
    last, last_before = _last_id(client, table), _last_id(client, copy)
    print(
        f"The counter is {last}, in the copy {last_before}; the highest id is {highest}."
    )
    new = max(last, last_before, highest)
    if last < max(last_before, 0):
        # Before it was damaged it may have given this many ids.
        new += _IDS_PER_SECOND * math.ceil(time.time() - moment)
    if new == last:
        return
    command = _RAISE_COUNTER.replace("TABLE", table).replace("NEW", str(new))
    raise DeploymentError(f"Ids may be given again. Run this, then plan:{command}")


def _last_id(client: Any, table: str) -> int:
    """Return the last id that a counter gave; -1 if it is missing or cannot be a counter."""
    response = client.get_item(TableName=table, Key=_COUNTER, ConsistentRead=True)
    digits = response.get("Item", {}).get("value", {}).get("N", "")
    is_possible = digits.isdigit() and int(digits) < _IMPOSSIBLE_ID
    return int(digits) if is_possible else -1


def _highest_id(client: Any, table: str) -> int:
    """Return the highest possible id of a table's animals; 0 if there are none."""
    response = client.query(
        TableName=table,
        KeyConditionExpression="pk = :pet AND id < :end",
        ExpressionAttributeValues={
            ":pet": {"S": "pet"},
            ":end": {"N": str(_IMPOSSIBLE_ID)},
        },
        ScanIndexForward=False,
        Limit=1,
        ConsistentRead=True,
    )
    return max([0, *(math.ceil(_number(each, "id")) for each in response["Items"])])


def _differences(
    client: Any, table: str, copy: str, key: list[str]
) -> Iterator[tuple[Item, Item]]:
    """Find the items of a copy that are missing in its table, or otherwise there.

    Left out are the counter, records of Idempotency-Keys that have expired, and keys that were
    revoked since.
    """
    pages = client.get_paginator("scan").paginate(TableName=copy, ConsistentRead=True)
    for page in pages:
        # BatchGetItem takes 100 keys.
        for start in range(0, len(page["Items"]), 100):
            batch = page["Items"][start : start + 100]
            keys = [{name: was[name] for name in key} for was in batch]
            items = _get(client, table, keys)
            for was in batch:
                found = items.get(str([was[name] for name in key]), {})
                is_expired = _is_record(was) and _number(was, "expires") <= time.time()
                is_counter = was.get("pk") == _COUNTER["pk"]
                is_revoked = "hash" in key and "revoked" in found
                if not (found == was or is_counter or is_expired or is_revoked):
                    yield found, was


def _get(client: Any, table: str, keys: list[Item]) -> dict[str, Item]:
    """Read items by their keys, at no more than half of what one partition serves."""
    items: dict[str, Item] = {}
    request: Any = {table: {"Keys": keys, "ConsistentRead": True}}
    while request:
        response = client.batch_get_item(
            RequestItems=request, ReturnConsumedCapacity="TOTAL"
        )
        for item in response["Responses"][table]:
            items[str([item[name] for name in keys[0]])] = item
        units = sum(each["CapacityUnits"] for each in response["ConsumedCapacity"])
        # Keys that were throttled come back in UnprocessedKeys and cost nothing.
        time.sleep(max(units, len(request[table]["Keys"])) / _READ_UNITS_PER_SECOND)
        request = response["UnprocessedKeys"]
    return items


def _put_back(client: Any, table: str, found: Item, was: Item) -> str:
    """Put an item back if it still is as it was found; say so, or why it is left."""
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
    return _PUT_BACK


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


def _read(file: Path) -> Iterator[dict[str, Any]]:
    """Read a plan; records of Idempotency-Keys come last, after their animals."""
    for is_record in (False, True):
        with file.open() as texts:
            for text in texts:
                try:
                    line = json.loads(text, object_hook=_decode)
                except ValueError as error:
                    raise DeploymentError(f"{file} is damaged: {error}") from None
                if _is_record(line["was"]) == is_record:
                    yield line


def _encode(binary: bytes) -> str:
    return b64encode(binary).decode()


def _decode(value: dict[str, Any]) -> dict[str, Any]:
    """Read a binary value, which is Base64 in JSON."""
    return {"B": b64decode(value["B"])} if isinstance(value.get("B"), str) else value


def _open_private(path: str, flags: int) -> int:
    """Open a file that only its owner may read."""
    return os.open(path, flags, 0o600)
