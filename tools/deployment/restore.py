"""Go back to a table as it was: restore it next to the one in use, carry over what is newer, and let the stage use it.

DynamoDB restores into a new table always. The stack keeps its own one, and an output says which of them is in use.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import boto3
import typer
from boto3.dynamodb.conditions import Attr, ConditionBase

from tools.deployment import release
from tools.deployment.stage import Stage, StageName, client

ANIMALS, KEYS = "AnimalsTable", "ApiKeysTable"
Table = Annotated[str, typer.Option(help="Its logical id in template.yaml.")]
_COUNTER = {"pk": "counter", "id": 0}
_DRAIN_S = 15  # a request that has begun ends within the function's 10 s
_UNDER_WAY = 10_000  # as many creations as the table takes in that time


def restore(stage: StageName, table: Table = ANIMALS, at: datetime | None = None) -> str:
    """Restore a table as it was at a moment (UTC; without one the latest) into a new one, and print its name."""
    dynamodb = client("dynamodb")
    source, target = (
        stage.outputs()[f"{table}Name"],
        f"{stage.stack}-{table}-{datetime.now(UTC):%Y%m%d%H%M%S}",
    )
    moment: dict[str, Any] = (
        {"RestoreDateTime": at.replace(tzinfo=UTC)} if at else {"UseLatestRestorableTime": True}
    )
    dynamodb.restore_table_to_point_in_time(
        SourceTableName=source, TargetTableName=target, **moment
    )
    while dynamodb.describe_table(TableName=target)["Table"]["TableStatus"] != "ACTIVE":
        time.sleep(10)
    # Time limit, recovery and protection do not come along.
    if attribute := dynamodb.describe_time_to_live(TableName=source)["TimeToLiveDescription"].get(
        "AttributeName"
    ):
        ttl = {"Enabled": True, "AttributeName": attribute}
        dynamodb.update_time_to_live(TableName=target, TimeToLiveSpecification=ttl)
    recovery = {"PointInTimeRecoveryEnabled": True}
    dynamodb.update_continuous_backups(TableName=target, PointInTimeRecoverySpecification=recovery)
    dynamodb.update_table(TableName=target, DeletionProtectionEnabled=True)
    print(target)
    return target


def cut_over(stage: StageName, name: str, table: Table = ANIMALS, *, carry: bool = True) -> None:
    """Let a stage use a restored table, or its own one again, after carrying over what is newer; safe to repeat."""
    stage.wait()
    old, own = _follow(name, stage.outputs()[f"{table}Name"]), stage.resources()[table]
    tables = {
        other: one for other, one in {**stage.restored_tables(), table: name}.items() if one != own
    }
    with _no_creations(stage) if table == ANIMALS else contextlib.nullcontext():
        if carry and name != old:
            carry_over(table, old, name)
        with release.fetched(stage, release.released(stage)) as artifact:
            release.install(stage, artifact, canary=False, tables=tables)


def _follow(name: str, in_use: str) -> str:
    """Return the table that one takes the place of: noted on it as a tag, as a repeat may find it in use already."""
    dynamodb = client("dynamodb")
    arn = dynamodb.describe_table(TableName=name)["Table"]["TableArn"]
    if name != in_use:
        dynamodb.tag_resource(ResourceArn=arn, Tags=[{"Key": "follows", "Value": in_use}])
    tags = dynamodb.list_tags_of_resource(ResourceArn=arn)["Tags"]
    return next((str(tag["Value"]) for tag in tags if tag["Key"] == "follows"), name)


@contextlib.contextmanager
def _no_creations(stage: Stage) -> Iterator[None]:
    """Refuse creations, so that nothing is written to the table that is left."""
    functions, create = client("lambda"), stage.functions()["CreatePetFunction"]
    # Not what it has now: that is 0 if a cut-over was interrupted.
    reserved = int(stage.used_parameters()["ReservedConcurrency"])
    functions.put_function_concurrency(FunctionName=create, ReservedConcurrentExecutions=0)
    try:
        time.sleep(_DRAIN_S)
        yield
    finally:
        stage.wait()  # an interrupted deployment goes on by itself, and may still write to the old table
        if reserved:
            functions.put_function_concurrency(
                FunctionName=create, ReservedConcurrentExecutions=reserved
            )
        else:
            functions.delete_function_concurrency(FunctionName=create)


def carry_over(table: str, old: str, new: str) -> None:
    """Copy what was written after the restored moment, and never give an id again; safe to repeat."""
    source, target = _table(old), _table(new)
    if table == KEYS:
        for item in _items(source):
            # A revocation is carried over too: a key that was revoked must not come back.
            _put(target, item, None if "revoked" in item else Attr("hash").not_exists())
        return
    # A creation that was under way at the restored moment had taken its id, and wrote its animal afterwards.
    recent = Attr("id").gt(counter(new) - _UNDER_WAY) | Attr("pk").begins_with("idempotency#")
    there = {(item["pk"], item["id"]) for item in _items(target, FilterExpression=recent)}
    for item in _items(source, FilterExpression=recent):
        if (item["pk"], item["id"]) not in there:
            _put(target, item, Attr("pk").not_exists())
    never_repeat_ids(new, counter(old))


def raise_counter(stage: StageName, value: int) -> None:
    """Let ids go on after VALUE; never sets the counter back."""
    table = stage.outputs()[f"{ANIMALS}Name"]
    never_repeat_ids(table, value)
    print(f"the last id given is {counter(table)}")


def never_repeat_ids(table: str, last: int) -> None:
    """Set a table's counter to a number, unless it is beyond that."""
    _put(
        _table(table),
        {**_COUNTER, "value": last},
        Attr("value").not_exists() | Attr("value").lt(last),
    )


def counter(table: str) -> int:
    """Return the last id that a table has given."""
    return int(
        _table(table).get_item(Key=_COUNTER, ConsistentRead=True).get("Item", {}).get("value", 0)
    )


def _table(name: str) -> Any:
    return boto3.resource("dynamodb").Table(name)


def _items(table: Any, **options: Any) -> Iterator[Mapping[str, Any]]:
    pages = table.meta.client.get_paginator("scan").paginate(
        TableName=table.name, ConsistentRead=True, **options
    )
    return (item for page in pages for item in page["Items"])


def _put(table: Any, item: Mapping[str, Any], condition: ConditionBase | None) -> None:
    with contextlib.suppress(table.meta.client.exceptions.ConditionalCheckFailedException):
        table.put_item(Item=item, **({"ConditionExpression": condition} if condition else {}))
