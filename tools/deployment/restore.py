"""Go back to a table as it was: restore it, carry over what is newer, and let the stage use it.

DynamoDB always restores into a new table. The stack keeps its own one, and an output says which of
them is in use.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import boto3
import stamina
import typer
from boto3.dynamodb.conditions import Attr, ConditionBase
from botocore.exceptions import ClientError

from tools.deployment import release
from tools.deployment.stage import StageName, client

ANIMALS, KEYS = "AnimalsTable", "ApiKeysTable"
Table = Annotated[str, typer.Option(help="Its logical id in template.yaml.")]
Into = Annotated[
    str, typer.Option(help="A new table that an interrupted restore has begun.")
]
_COUNTER = {"pk": "counter", "id": 0}
_DRAIN_S = 15  # a request that has begun ends within the function's 10 s
_UNDER_WAY = 10_000  # as many creations as the table takes in that time
_RESTORE_POLLS = {"Delay": 10, "MaxAttempts": 24 * 360}  # for a day
_SETTLE_S = 600.0
# What a new table answers until everything of it is there.
_NOT_READY = {
    "ContinuousBackupsUnavailableException",
    "LimitExceededException",
    "ResourceInUseException",
    "ResourceNotFoundException",
}


def restore(
    stage: StageName,
    table: Table = ANIMALS,
    at: datetime | None = None,
    into: Into = "",
) -> str:
    """Restore a table as it was at a moment (UTC; without one the latest) into a new one."""
    dynamodb, source = client("dynamodb"), stage.outputs()[f"{table}Name"]
    target = into or f"{stage.stack}-{table}-{datetime.now(UTC):%Y%m%d%H%M%S}"
    repeat = f"if interrupted, repeat with --into {target}"
    print(f"restoring {source} into {target}; {repeat}", flush=True)
    moment: dict[str, Any] = {"UseLatestRestorableTime": True}
    if at:
        moment = {"RestoreDateTime": at.replace(tzinfo=UTC)}
    with contextlib.suppress(dynamodb.exceptions.TableAlreadyExistsException):
        dynamodb.restore_table_to_point_in_time(
            SourceTableName=source, TargetTableName=target, **moment
        )
    dynamodb.get_waiter("table_exists").wait(
        TableName=target, WaiterConfig=_RESTORE_POLLS
    )
    for attempt in stamina.retry_context(
        on=_is_not_ready, attempts=None, timeout=_SETTLE_S, wait_initial=1, wait_max=15
    ):
        with attempt:
            _protect(source, target)
    print(f"{target} is restored: make cut-over STAGE={stage.name} TABLE={target}")
    return target


def _is_not_ready(error: Exception) -> bool:
    return (
        isinstance(error, ClientError) and error.response["Error"]["Code"] in _NOT_READY
    )


def _protect(source: str, target: str) -> None:
    """Give a restored table what does not come along: time to live, recovery and protection."""
    dynamodb = client("dynamodb")
    dynamodb.update_continuous_backups(
        TableName=target,
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
    )
    dynamodb.update_table(TableName=target, DeletionProtectionEnabled=True)
    expiry = dynamodb.describe_time_to_live(TableName=source)["TimeToLiveDescription"]
    there = dynamodb.describe_time_to_live(TableName=target)["TimeToLiveDescription"]
    if "AttributeName" in expiry and "AttributeName" not in there:
        dynamodb.update_time_to_live(
            TableName=target,
            TimeToLiveSpecification={
                "Enabled": True,
                "AttributeName": expiry["AttributeName"],
            },
        )


def cut_over(
    stage: StageName, name: str, table: Table = ANIMALS, *, carry: bool = True
) -> None:
    """Let a stage use a restored table, or its own one again; safe to repeat.

    Nothing is added to a table that is left once it is closed, whichever function still uses it.
    """
    stage.wait()
    in_use, own = stage.outputs()[f"{table}Name"], stage.resources()[table]
    left = _tables_left_for(name, in_use, table)
    if table == ANIMALS:
        _close(left, name)
    _take_over(table, left, name, carry=carry)
    if table == ANIMALS:
        _open(name)
    tables = {**stage.restored_tables(), table: name}
    if name == own:
        del tables[table]
    with release.fetched(stage, release.released(stage)) as artifact:
        release.install(stage, artifact, canary=False, tables=tables)
    if table == KEYS:  # what was issued or revoked during the deployment
        _take_over(table, left, name, carry=carry)


def _tables_left_for(name: str, in_use: str, table: str) -> list[str]:
    """Return the tables that may hold what a table lacks.

    They are the one in use; the one that a repeated cut-over has left, as the table's tag says;
    and the one for which that in use was closed, if its deployment was taken back.
    """
    dynamodb = client("dynamodb")
    arn = dynamodb.describe_table(TableName=name)["Table"]["TableArn"]
    if name != in_use:
        dynamodb.tag_resource(
            ResourceArn=arn, Tags=[{"Key": "follows", "Value": in_use}]
        )
    tags = dynamodb.list_tags_of_resource(ResourceArn=arn)["Tags"]
    left = {in_use, *(str(tag["Value"]) for tag in tags if tag["Key"] == "follows")}
    if table == ANIMALS:
        left.add(_counter_item(in_use).get("closed", name))
    return sorted(left - {name})


def _close(names: list[str], successor: str) -> None:
    """Let tables give no more ids, because another takes their place, and wait for what began."""
    for name in names:
        _table(name).update_item(
            Key=_COUNTER,
            UpdateExpression="SET closed = :successor",
            ExpressionAttributeValues={":successor": successor},
        )
    if names:
        time.sleep(_DRAIN_S)


def _take_over(table: str, names: list[str], successor: str, *, carry: bool) -> None:
    for name in names:
        if carry:
            carry_over(table, name, successor)
        if table == ANIMALS:
            never_repeat_ids(successor, counter(name))


def _open(name: str) -> None:
    """Let a table give ids: it may have been closed, or restored from one that was."""
    _table(name).update_item(Key=_COUNTER, UpdateExpression="REMOVE closed")


def carry_over(table: str, old: str, new: str) -> None:
    """Copy what was written after the restored moment."""
    source, target = _table(old), _table(new)
    if table == KEYS:
        for item in _items(source):
            # A revocation is carried over too: a key that was revoked must not come back.
            _put(target, item, None if "revoked" in item else Attr("hash").not_exists())
        return
    # A creation that was under way at the restored moment had taken its id, and wrote its animal
    # afterwards.
    recent = Attr("id").gt(counter(new) - _UNDER_WAY) | Attr("pk").begins_with(
        "idempotency#"
    )
    there = {
        (item["pk"], item["id"]) for item in _items(target, FilterExpression=recent)
    }
    for item in _items(source, FilterExpression=recent):
        if (item["pk"], item["id"]) not in there:
            _put(target, item, Attr("pk").not_exists())


def raise_counter(stage: StageName, value: int) -> None:
    """Let ids go on after VALUE; never sets the counter back."""
    table = stage.outputs()[f"{ANIMALS}Name"]
    never_repeat_ids(table, value)
    print(f"the last id given is {counter(table)}")


def never_repeat_ids(name: str, last: int) -> None:
    """Set a table's counter to a number, unless it is beyond that."""
    table = _table(name)
    with contextlib.suppress(
        table.meta.client.exceptions.ConditionalCheckFailedException
    ):
        table.update_item(
            Key=_COUNTER,
            UpdateExpression="SET #value = :last",
            ConditionExpression=Attr("value").not_exists() | Attr("value").lt(last),
            ExpressionAttributeNames={"#value": "value"},
            ExpressionAttributeValues={":last": last},
        )


def counter(name: str) -> int:
    """Return the last id that a table has given."""
    return int(_counter_item(name).get("value", 0))


def _counter_item(name: str) -> dict[str, Any]:
    item: dict[str, Any] = (
        _table(name).get_item(Key=_COUNTER, ConsistentRead=True).get("Item", {})
    )
    return item


def _table(name: str) -> Any:
    return boto3.resource("dynamodb").Table(name)


def _items(table: Any, **options: Any) -> Iterator[Mapping[str, Any]]:
    paginator = table.meta.client.get_paginator("scan")
    for page in paginator.paginate(
        TableName=table.name, ConsistentRead=True, **options
    ):
        yield from page["Items"]


def _put(table: Any, item: Mapping[str, Any], condition: ConditionBase | None) -> None:
    with contextlib.suppress(
        table.meta.client.exceptions.ConditionalCheckFailedException
    ):
        table.put_item(
            Item=item, **({"ConditionExpression": condition} if condition else {})
        )
