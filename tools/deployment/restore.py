"""Go back to a table as it was: restore it next to the one in use, carry over what is newer, and let the stage use it.

DynamoDB restores into a new table always. The stack keeps its own one, and an output says which of them is in use.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tools.deployment import release
from tools.deployment.stage import Stage, client

ANIMALS, KEYS = "AnimalsTable", "ApiKeysTable"
_COUNTER = {"pk": {"S": "counter"}, "id": {"N": "0"}}
_DRAIN_S = 15  # a request that has begun ends within the function's 10 s
_UNDER_WAY = 10_000  # as many creations as the table takes in that time


def restore(stage: Stage, table: str, at: datetime | None) -> str:
    """Restore a table as it was at a moment, the latest possible if None, with all settings; return the new name."""
    dynamodb = client("dynamodb")
    source, target = stage.outputs()[f"{table}Name"], f"{stage.stack}-{table}-{datetime.now(UTC):%Y%m%d%H%M%S}"
    moment: dict[str, Any] = {"RestoreDateTime": at.replace(tzinfo=UTC)} if at else {"UseLatestRestorableTime": True}
    dynamodb.restore_table_to_point_in_time(SourceTableName=source, TargetTableName=target, **moment)
    while dynamodb.describe_table(TableName=target)["Table"]["TableStatus"] != "ACTIVE":
        time.sleep(10)
    # Time limit, recovery and protection do not come along.
    if attribute := dynamodb.describe_time_to_live(TableName=source)["TimeToLiveDescription"].get("AttributeName"):
        ttl = {"Enabled": True, "AttributeName": attribute}
        dynamodb.update_time_to_live(TableName=target, TimeToLiveSpecification=ttl)
    recovery = {"PointInTimeRecoveryEnabled": True}
    dynamodb.update_continuous_backups(TableName=target, PointInTimeRecoverySpecification=recovery)
    dynamodb.update_table(TableName=target, DeletionProtectionEnabled=True)
    return target


def cut_over(stage: Stage, table: str, name: str, *, carry: bool, drain_s: float = _DRAIN_S) -> None:
    """Let a stage use a restored table, or its own one again; safe to repeat.

    Creations are refused while what is newer is carried over, so that nothing is written to the table that is left.
    """
    stage.wait()
    old, own = stage.outputs()[f"{table}Name"], stage.resources()[table]
    tables = {other: one for other, one in {**stage.restored_tables(), table: name}.items() if one != own}
    with _no_creations(stage) if table == ANIMALS else contextlib.nullcontext():
        time.sleep(drain_s)
        if carry and name != old:
            carry_over(table, old, name)
        with release.fetched(stage, release.released(stage)) as path:
            release.install(stage, path, canary=False, tables=tables)


@contextlib.contextmanager
def _no_creations(stage: Stage) -> Iterator[None]:
    functions, create = client("lambda"), stage.functions()["CreatePetFunction"]
    # Not what it has now: that is 0 if a cut-over was interrupted.
    reserved = int(stage.used_parameters()["ReservedConcurrency"])
    functions.put_function_concurrency(FunctionName=create, ReservedConcurrentExecutions=0)
    try:
        yield
    finally:
        stage.wait()  # an interrupted deployment goes on by itself, and may still write to the old table
        if reserved:
            functions.put_function_concurrency(FunctionName=create, ReservedConcurrentExecutions=reserved)
        else:
            functions.delete_function_concurrency(FunctionName=create)


def carry_over(table: str, old: str, new: str) -> None:
    """Copy what was written after the restored moment, and never give an id again; safe to repeat."""
    if table == KEYS:
        for item in _items(old):
            # A revocation is carried over too: a key that was revoked must not come back.
            _put(new, item, {} if "revoked" in item else {"ConditionExpression": "attribute_not_exists(label)"})
        return
    # A creation that was under way at the restored moment had taken its id, and wrote its animal afterwards.
    values = {":last": {"N": str(counter(new) - _UNDER_WAY)}, ":idempotency": {"S": "idempotency#"}}
    recent = {"FilterExpression": "id > :last OR begins_with(pk, :idempotency)", "ExpressionAttributeValues": values}
    there = {(item["pk"]["S"], item["id"]["N"]) for item in _items(new, **recent)}
    for item in _items(old, **recent):
        if (item["pk"]["S"], item["id"]["N"]) not in there:
            _put(new, item, {"ConditionExpression": "attribute_not_exists(pk)"})
    raise_counter(new, counter(old))


def counter(table: str) -> int:
    """Return the last id that a table has given."""
    item = client("dynamodb").get_item(TableName=table, Key=_COUNTER, ConsistentRead=True).get("Item")
    return int(item["value"]["N"]) if item else 0


def raise_counter(table: str, value: int) -> None:
    """Let ids go on after a number; never set the counter back."""
    dynamodb = client("dynamodb")
    with contextlib.suppress(dynamodb.exceptions.ConditionalCheckFailedException):  # it is there already
        dynamodb.update_item(
            TableName=table, Key=_COUNTER, UpdateExpression="SET #value = :value",
            ConditionExpression="attribute_not_exists(#value) OR #value < :value",
            ExpressionAttributeNames={"#value": "value"}, ExpressionAttributeValues={":value": {"N": str(value)}},
        )  # fmt: skip


def _items(table: str, **options: Any) -> Iterator[Mapping[str, Any]]:
    pages = client("dynamodb").get_paginator("scan").paginate(TableName=table, ConsistentRead=True, **options)
    return (item for page in pages for item in page["Items"])


def _put(table: str, item: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    dynamodb = client("dynamodb")
    with contextlib.suppress(dynamodb.exceptions.ConditionalCheckFailedException):
        dynamodb.put_item(TableName=table, Item=item, **options)
