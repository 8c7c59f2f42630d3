"""Restore damaged items of a stage's table from an older copy of the table.

The command `plan` writes a file, the plan, with each item of the copy that is missing or different
in the table. A person reads and edits the plan. The command `apply` restores the items in the plan.

The service writes each item once, and the ids that it assigns only rise. So single items can be
restored while the service runs. An item that has changed since the plan was written is skipped.
"""

import json
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import typer

from ops.stage import StageError, StageName

app = typer.Typer(help="Restore damaged items of a table.", no_args_is_help=True)

Item = dict[str, dict[str, Any]]
"""An item in DynamoDB's own JSON format; empty if the table has no such item."""

# The SDK's client keeps ten connections, so ten threads read. Each thread pauses before each item,
# so that the ten threads together read at most 1,500 items a second. One partition can serve twice
# as many. An item accepts at most 1,000 writes a second. The counter is one item, so the service
# assigns at most 1,000 ids a second.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
_READERS = 10
_PAUSE_SECONDS = _READERS / 1_500
_IDS_PER_SECOND = 1_000
# A number with more digits must be damaged: to reach such an id would take thirty years.
_MAX_DIGITS = 12
_RECORD_SECONDS = 24 * 60 * 60
_PRINTED_EXAMPLES = 10
"""The number of differences that are printed for each category."""
_RAISE_COUNTER = """
aws dynamodb update-item --cli-input-json '{
    "TableName": "TABLE", "Key": {"pk": {"S": "counter"}, "id": {"N": "0"}},
    "UpdateExpression": "SET #value = :new", "ExpressionAttributeNames": {"#value": "value"},
    "ConditionExpression": "NOT attribute_type(#value, :n) OR #value < :new OR #value >= :end",
    "ExpressionAttributeValues": {
        ":n": {"S": "N"}, ":new": {"N": "NEW"}, ":end": {"N": "1000000000000"}
    }
}'
"""


class Difference(NamedTuple):
    """One line of a plan: an item as `plan` found it in the table, and as it is in the copy."""

    table: str
    current: Item
    copied: Item


@app.command()
def plan(stage: StageName, copy: str) -> None:
    """Compare the table COPY with its original; write the differences to the file COPY/plan.jsonl.

    Sometimes an item of the original was created after the copy was taken, but the copy has an
    older item with the same id or Idempotency-Key. In that case, the id was assigned twice or the
    key was used twice, and the newer item belongs to another client. Such a difference is written
    to COPY/others.jsonl instead.
    """
    outputs, client = stage.outputs(), stage.client("dynamodb")
    summary = client.describe_table(TableName=copy)["Table"].get("RestoreSummary", {})
    table = summary.get("SourceTableArn", "").rpartition("/")[2]
    if table not in outputs.values():
        raise StageError(f"{copy} is not a copy of a table of {stage.stack}")
    copied_at = summary["RestoreDateTime"]
    print(f"{copy} is {table} as it was at {copied_at}.")
    key_names = ["hash"]
    if table == outputs["AnimalsTableName"]:
        key_names = ["pk", "id"]
        _check_counter(client, table, copy, copied_at.timestamp())
    folder = Path(copy)
    if folder.exists():
        raise StageError(f"{copy} has an earlier plan; first: rm -r {copy}")
    folder.mkdir(0o700)
    paths = folder / "plan.jsonl", folder / "others.jsonl"
    for path in paths:
        path.touch(0o600)
    counts = Counter[str]()
    with paths[0].open("w") as plan_file, paths[1].open("w") as others_file:
        for difference in _differences(client, table, copy, key_names):
            file = plan_file
            category = "changed" if difference.current else "missing"
            created_at = _creation_time(difference.current)
            is_newer = created_at >= copied_at.timestamp()
            if is_newer and created_at != _creation_time(difference.copied):
                file, category = others_file, "another client's"
            line = json.dumps(
                difference._asdict(), default=lambda value: b64encode(value).decode()
            )
            print(line, file=file)
            counts[category] += 1
            if counts[category] <= _PRINTED_EXAMPLES:
                print(f"{category}: {line[:500]}")
    print(f"{copy}: {counts.total()} items differ: {dict(counts)}")


@app.command()
def apply(stage: StageName, file: Path) -> None:
    """Restore each item in the plan FILE, unless the item has changed since `plan` ran."""
    tables, client = {*stage.outputs().values()}, stage.client("dynamodb")
    for _ in _read_plan(file, tables):
        pass  # A damaged line raises an error before anything is written.
    skipped = 0
    # Restore the animals before the records of Idempotency-Keys that refer to them.
    for is_record in (False, True):
        for difference in _read_plan(file, tables):
            if _is_idempotency_record(difference.copied) != is_record:
                continue
            if not _restore_item(client, *difference):
                skipped += 1
                print(f"skipped: {difference}"[:500])
    copy = file.absolute().parent.name
    print(f"When a new plan is empty: aws dynamodb delete-table --table-name {copy}")
    if skipped:
        raise StageError(
            f"{skipped} items were skipped: they have changed since the plan, or are idempotency "
            "records without their animal. Make a new plan, or decide about each item."
        )


def _check_counter(client: Any, table: str, copy: str, copied_at: float) -> None:
    """Raise StageError, with a command to run, if the counter could assign an id twice."""
    key = {"pk": {"S": "counter"}, "id": {"N": "0"}}
    # Read the ids before the counter: if an animal is created in between, the counter is then newer
    # than the ids, never older.
    highest = max(_highest_id(client, name) for name in (table, copy))
    counter = _read_number(_get_item(client, table, key), "value")
    counter_in_copy = _read_number(_get_item(client, copy, key), "value")
    print(
        f"The counter is {counter}, in the copy {counter_in_copy}; the highest id is {highest}."
    )
    new_counter = max(counter, counter_in_copy, highest)
    if counter < counter_in_copy:
        # After the copy was taken, the service may have assigned ids that neither table has. Skip
        # as many ids as the counter can have assigned since then.
        new_counter += _IDS_PER_SECOND * int(time.time() - copied_at + 1)
    if new_counter != counter:
        # Replace NEW first, because the name of the table may contain this word, too.
        command = _RAISE_COUNTER.replace("NEW", str(new_counter))
        raise StageError(
            "Ids may be assigned twice. Run this command, then plan again:"
            + command.replace("TABLE", table)
        )


def _highest_id(client: Any, table: str) -> int:
    """Return the highest id of the animals in a table; ignore damaged ids."""
    response = client.query(
        TableName=table,
        KeyConditionExpression="pk = :pk AND id < :end",
        ExpressionAttributeValues={
            ":pk": {"S": "pet"},
            ":end": {"N": str(10**_MAX_DIGITS)},
        },
        ScanIndexForward=False,
        Limit=1,
        ConsistentRead=True,
    )
    animal: Item = next(iter(response["Items"]), {})
    return _read_number(animal, "id")


def _differences(
    client: Any, table: str, copy: str, key_names: list[str]
) -> Iterator[Difference]:
    """Yield each item of a copy that is missing or different in its table.

    This leaves out the counter, expired records of Idempotency-Keys, and API keys that are revoked
    in the table.
    """

    def compare(copied: Item) -> Difference:
        key = {name: copied[name] for name in key_names}
        return Difference(table, _get_item(client, table, key), copied)

    pages = client.get_paginator("scan").paginate(TableName=copy, ConsistentRead=True)
    with ThreadPoolExecutor(_READERS) as readers:
        for page in pages:
            for difference in readers.map(compare, page["Items"]):
                _, current, copied = difference
                is_counter = copied.get("pk") == {"S": "counter"}
                expires = _read_number(copied, "expires")
                is_expired = _is_idempotency_record(copied) and expires <= time.time()
                is_revoked = "hash" in key_names and "revoked" in current
                if not (current == copied or is_counter or is_expired or is_revoked):
                    yield difference


def _get_item(client: Any, table: str, key: Item) -> Any:
    """Read an item after a pause, which leaves half of a partition's capacity to the service."""
    time.sleep(_PAUSE_SECONDS)
    response = client.get_item(TableName=table, Key=key, ConsistentRead=True)
    return response.get("Item", {})


def _read_plan(file: Path, tables: set[str]) -> Iterator[Difference]:
    """Yield the lines of a plan; raise StageError for a line that cannot be applied."""
    with file.open() as lines:
        for line in lines:
            try:
                difference = Difference(**json.loads(line, object_hook=_decode_binary))
            except (ValueError, TypeError):
                raise StageError(f"not a line of a plan: {line[:500]}") from None
            if difference.table not in tables:
                raise StageError(f"{difference.table} is not a table of the stage")
            yield difference


def _restore_item(client: Any, table: str, current: Item, copied: Item) -> bool:
    """Restore an item unless it has changed since `plan` ran; return whether it is restored."""
    if _is_idempotency_record(copied):
        created_id = {"N": str(_read_number(copied, "createdId"))}
        animal = _get_item(client, table, {"pk": {"S": "pet"}, "id": created_id})
        # The service reads the clock twice: for the animal, and up to 1 s later for its idempotency
        # record. If the two times differ by more, the record belongs to another creation.
        if not 0 <= _creation_time(copied) - _creation_time(animal) <= 1:
            return False
    names, values, conditions = {}, {}, []
    # An expression may have at most 300 operators and 4 KB, so compare at most 120 attributes.
    attributes = [*dict.fromkeys([*copied, "revoked", *current])][:120]
    for number, name in enumerate(attributes):
        names[f"#{number}"] = name
        conditions.append(f"attribute_not_exists(#{number})")
        if name in current:
            values[f":{number}"] = current[name]
            conditions[-1] = f"#{number} = :{number}"
    try:
        client.put_item(
            TableName=table,
            Item=copied,
            ConditionExpression=" AND ".join(conditions),
            ExpressionAttributeNames=names,
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
            **({"ExpressionAttributeValues": values} if values else {}),
        )
    except client.exceptions.ConditionalCheckFailedException as error:
        # Another `apply`, or a first attempt whose response was lost, may have restored the item.
        return bool(error.response.get("Item") == copied)
    return True


def _creation_time(item: Item) -> int:
    """Return when an item was created, in seconds since 1970; 0 or less if the time is unknown."""
    if _is_idempotency_record(item):
        return _read_number(item, "expires") - _RECORD_SECONDS
    return _read_number(item, "createdAt")


def _read_number(item: Item, name: str) -> int:
    """Return a number attribute of an item; 0 if it is missing or not a valid number."""
    text = item.get(name, {}).get("N", "")
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else 0


def _is_idempotency_record(item: Item) -> bool:
    return str(item.get("pk", {}).get("S")).startswith("idempotency#")


def _decode_binary(value: dict[str, Any]) -> dict[str, Any]:
    """Decode a binary value; a plan contains such values in Base64."""
    return {"B": b64decode(value["B"])} if isinstance(value.get("B"), str) else value
