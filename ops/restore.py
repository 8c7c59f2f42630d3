"""Repair a stage's tables while the service runs.

The service never changes an animal, and the ids that it assigns only rise. So single items can be
restored from an older copy of a table, or removed, while clients add others.

The commands `plan` and `find` only list items. A person reads and edits the lists. The commands
`apply` and `remove` change the listed items, and skip an item if its listed attributes have
changed. So each command can be repeated after an interruption, and several people can run it at
once, in folders of their own.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import typer
from animal_store.models import NewPet
from animal_store.validators import Validator
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel, ValidationError

# Before Python 3.12, pydantic needs this TypedDict.
from typing_extensions import TypedDict

from ops.stage import Stage, StageArgument, StageError

app = typer.Typer(help="Repair damaged tables.", no_args_is_help=True)

# Ten threads, because the SDK's client keeps ten connections. Each pauses before a request, so that
# a command makes at most half of the 3,000 reads (4 KB) and 1,000 writes (1 KB) a second that a
# partition serves.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
_THREADS = 10
_READ_SECONDS = _THREADS / 1_500
_WRITE_SECONDS = _THREADS / 500
_PAGE_SECONDS = 256 / 1_500  # a page of 1 MB takes 256 reads of 4 KB
# Each new id is a write to the counter. The counter is one item, which accepts at most 1,000 writes
# a second, and no stage is older than 2026. So no id exceeds 1,000 times the seconds since then.
_IDS_PER_SECOND = 1_000
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_COUNTER = {"pk": {"S": "counter"}, "id": {"N": "0"}}
# A number with more digits must be damaged: to reach such an id would take thirty years.
_MAX_DIGITS = 12
_ONLY_COUNTED = {"sound", "expired", "waiting"}
"""The categories of items that `plan` writes to no file."""
_PET: Validator[Any] = Validator("PetItemResponse")


class Value(TypedDict, total=False):
    """A value in DynamoDB's own JSON format, which has exactly one of these members."""

    S: str
    N: str
    B: bytes
    BOOL: bool
    NULL: bool
    SS: list[str]
    NS: list[str]
    BS: list[bytes]
    L: list["Value"]
    M: dict[str, "Value"]


Item = dict[str, Value]
"""An item; empty if the table has no such item."""


class Line(BaseModel, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64"):
    """A line for `apply` or `remove`: a table's name, and an item as `plan` or `find` read it."""

    table: str
    current: Item


class Restoration(Line):
    """A line of a plan: a Line, and the item as it is in the copy of the table."""

    copied: Item


class Removal(Line):
    """A line of `find`."""

    remove: Literal[True]


@app.command()
def counter(stage: StageArgument) -> None:
    """Set the id counter above all ids that may be taken; a sound higher one stays."""
    table, client = stage.outputs()["AnimalsTableName"], stage.client("dynamodb")
    # Take the time from DynamoDB: this computer's clock may be wrong.
    headers = client.describe_table(TableName=table)["ResponseMetadata"]["HTTPHeaders"]
    since_beginning = parsedate_to_datetime(headers["date"]) - _BEGINNING
    value = _IDS_PER_SECOND * int(since_beginning.total_seconds())
    condition = "NOT attribute_type(#value, :n) OR #value < :value OR #value >= :end"
    with suppress(client.exceptions.ConditionalCheckFailedException):
        client.update_item(
            TableName=table,
            Key=_COUNTER,
            UpdateExpression="SET #value = :value",
            ConditionExpression=condition,
            ExpressionAttributeNames={"#value": "value"},
            ExpressionAttributeValues={
                ":n": {"S": "N"},
                ":value": {"N": str(value)},
                ":end": {"N": str(10**_MAX_DIGITS)},
            },
        )
    print(f"The counter is {value} or higher.")


@app.command()
def plan(stage: StageArgument, copy: str) -> None:
    """Compare the table COPY's items with the original's; write a plan to a folder named COPY.

    missing.jsonl: items that the original lacks. Restoring them overwrites nothing.

    changed.jsonl: items that are different in the original.

    others.jsonl: items that may have been replaced, because their id was assigned twice: the
    original probably has a later animal.

    revoked.jsonl: API keys that are revoked in the original, and that differ from the copy.

    An Idempotency-Key's record that is `expired`, or `waiting` for its animal, is only counted.
    """
    outputs, client = stage.outputs(), stage.client("dynamodb")
    summary = client.describe_table(TableName=copy)["Table"].get("RestoreSummary", {})
    table = summary.get("SourceTableArn", "").rpartition("/")[2]
    if table not in outputs.values():
        raise StageError(f"{copy} is not a copy of a table of {stage.stack}")
    copied_at = summary["RestoreDateTime"]
    key_names = ["hash"]
    if table == outputs["AnimalsTableName"]:
        key_names = ["pk", "id"]
        _check_counter(stage, client, table, copy)
    if Path(copy).exists():
        raise StageError(f"the folder {copy} has an earlier plan; first: rm -r {copy}")
    counts = Counter[str]()
    # The folder gets its final name when the plan is complete; a failed plan's folder is deleted.
    with TemporaryDirectory(prefix=f"{copy}.", dir=".") as folder:
        for category, line in _compare(client, table, copy, key_names):
            counts[category] += 1
            if category not in _ONLY_COUNTED:
                with Path(folder, f"{category}.jsonl").open("a") as file:
                    print(line.model_dump_json(), file=file)
        Path(folder).rename(copy)
    print(f"{copy}, {table} as it was at {copied_at}: {dict(sorted(counts.items()))}")


@app.command()
def apply(stage: StageArgument, file: Path) -> None:
    """Restore each item that FILE lists, unless its listed attributes have changed."""
    _change_items(stage, file, Restoration)


@app.command()
def find(stage: StageArgument, created_by: str = "") -> None:
    """List the animals that the service cannot read, or, with --created-by, all that one key added.

    CREATED_BY is the id of the key. Each animal gets a line; `remove` takes a file of such lines.
    """
    table, client = stage.outputs()["AnimalsTableName"], stage.client("dynamodb")
    pages = client.get_paginator("query").paginate(
        TableName=table,
        KeyConditionExpression="pk = :pet",
        ExpressionAttributeValues={":pet": {"S": "pet"}},
        ConsistentRead=True,
    )
    for page in pages:
        time.sleep(_PAGE_SECONDS)
        for animal in page["Items"]:
            is_by_key = animal.get("createdBy") == {"S": created_by}
            is_listed = is_by_key if created_by else not _is_readable(animal)
            if is_listed:
                line = Removal(table=table, current=animal, remove=True)
                print(line.model_dump_json())


@app.command()
def remove(stage: StageArgument, file: Path) -> None:
    """Remove each animal that FILE lists, unless its listed attributes have changed."""
    _change_items(stage, file, Removal)


def _check_counter(stage: Stage, client: Any, table: str, copy: str) -> None:
    """Raise StageError if the counter is below the copy's. An unreadable counter counts as 0."""
    value, value_in_copy = (
        _read_number(_get_item(client, name, _COUNTER), "value")
        for name in (table, copy)
    )
    if value < value_in_copy:
        raise StageError(
            f"The counter is {value}, in the copy {value_in_copy}: ids may be assigned twice. "
            f"Run: animal-store restore counter {stage.name}. Then plan again."
        )


def _compare(
    client: Any, table: str, copy: str, key_names: list[str]
) -> Iterator[tuple[str, Restoration]]:
    """Compare each item of a copy with the table's; yield its category and a line of the plan."""
    read = partial(_get_item, client)

    def compare(copied: Item) -> tuple[str, Restoration]:
        key = {name: copied[name] for name in key_names}
        current = read(table, key)
        line = Restoration(table=table, current=current, copied=copied)
        if current == copied or key == _COUNTER:
            return "sound", line
        is_record = str(copied.get("pk", {}).get("S")).startswith("idempotency#")
        if is_record and _read_number(copied, "expires") <= time.time():
            return "expired", line
        created_id = str(_read_number(copied, "createdId"))
        animal = {"pk": {"S": "pet"}, "id": {"N": created_id}}
        if is_record and read(table, animal) != read(copy, animal):
            return "waiting", line
        if "revoked" in current and key_names == ["hash"]:
            return "revoked", line
        if current and _may_be_another_animal(current, copied):
            return "others", line
        return "changed" if current else "missing", line

    pages = client.get_paginator("scan").paginate(TableName=copy, ConsistentRead=True)
    with ThreadPoolExecutor(_THREADS) as threads:
        for page in pages:
            yield from threads.map(compare, page["Items"])


def _may_be_another_animal(current: Item, copied: Item) -> bool:
    """Return whether two items with the same id may be two animals.

    An animal keeps its `createdAt`, and its `token` is unique. Two usually differ elsewhere, too.
    """
    same = {name for name in current if current[name] == copied.get(name)}
    differing = {*current, *copied} - same
    identity = {"createdAt", "token"}
    return bool("token" not in same and differing & identity and differing - identity)


def _change_items(stage: Stage, file: Path, kind: type[Line]) -> None:
    """Restore or remove the items that a file lists; raise StageError if some are skipped."""
    tables, client = {*stage.outputs().values()}, stage.client("dynamodb")
    counts = Counter[bool]()
    with file.open("rb") as texts, ThreadPoolExecutor(_THREADS) as threads:
        for _ in _read_lines(texts, kind, tables):
            pass  # A wrong line raises an error before anything is written.
        texts.seek(0)
        lines = _read_lines(texts, kind, tables)
        # An interruption waits for at most 1,000 lines.
        while batch := [*islice(lines, 1_000)]:
            for problem in threads.map(partial(_write, client), batch):
                counts[bool(problem)] += 1
                if problem:
                    print(f"line {counts.total()}: {problem}"[:500])
    summary = f"{counts[False]} lines are done, {counts[True]} are skipped."
    if counts[True]:
        raise StageError(summary)
    print(summary)


def _read_lines(
    texts: Iterable[bytes], kind: type[Line], tables: set[str]
) -> Iterator[Line]:
    """Yield the lines of a file, parsed as `kind`; raise StageError if a line is invalid."""
    for number, text in enumerate(texts, 1):
        try:
            line = kind.model_validate_json(text)
        except ValidationError as error:
            raise StageError(f"line {number}: {error}") from None
        if line.table not in tables:
            raise StageError(f"line {number}: {line.table} is not of this stage")
        yield line


def _write(client: Any, line: Line) -> str:
    """Restore or remove a line's item, if it is unchanged; return an error if that fails."""
    time.sleep(_WRITE_SECONDS)
    copied = line.copied if isinstance(line, Restoration) else {}
    names, values, conditions = {}, {}, []
    # Also compare some attributes that somebody's repair may have added since. An expression may
    # have at most 300 operators and 4 KB, so compare at most 120 attributes.
    repaired = [*NewPet.__annotations__, "createdAt", "createdBy", "token", "revoked"]
    attributes = [*copied, *repaired, *line.current]
    for number, name in enumerate([*dict.fromkeys(attributes)][:120]):
        names[f"#{number}"] = name
        conditions.append(f"attribute_not_exists(#{number})")
        if name in line.current:
            values[f":{number}"] = line.current[name]
            conditions[-1] = f"#{number} = :{number}"
    condition = {
        "TableName": line.table,
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": names,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        **({"ExpressionAttributeValues": values} if values else {}),
    }
    try:
        if isinstance(line, Removal):
            key = {name: line.current.get(name, {}) for name in ("pk", "id")}
            client.delete_item(Key=key, **condition)
        else:
            client.put_item(Item=copied, **condition)
    except client.exceptions.ConditionalCheckFailedException as error:
        # Another command, or a first attempt whose response was lost, may have done this already.
        if error.response.get("Item", {}) != copied:
            return f"{error}: {line!r}"
    except (BotoCoreError, ClientError) as error:
        return f"{error}: {line!r}"
    return ""


def _get_item(client: Any, table: str, key: Any) -> Any:
    """Read an item after a pause; return an empty item if the table has none with this key."""
    time.sleep(_READ_SECONDS)
    response = client.get_item(TableName=table, Key=key, ConsistentRead=True)
    return response.get("Item", {})


def _read_number(item: Item, name: str) -> int:
    """Return a number attribute of an item; 0 unless it is a whole number of at most 12 digits."""
    text = item.get(name, {}).get("N", "")
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else 0


def _is_readable(animal: Item) -> bool:
    """Return whether the service can read an animal."""
    try:
        _PET.validate({"Item": animal})
    except ValidationError:
        return False
    return True
