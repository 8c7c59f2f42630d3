"""Go back to a table as it was: restore it, carry over what is newer, and let the stage use it.

DynamoDB always restores into a new table. The stack keeps its own, and an output says which of the
two is in use.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any

import boto3
import stamina
import typer
from boto3.dynamodb.conditions import Attr

from tools.deployment import release
from tools.deployment.stage import DeploymentError, StageName

ANIMALS, KEYS = "AnimalsTable", "ApiKeysTable"
_COUNTER = {"pk": "counter", "id": 0}
_DRAIN_S = 15  # a request that has begun ends within the function's 10 s
_UNDER_WAY = 10_000  # as many creations as the table takes in that time
_RESTORE_POLLS = {"Delay": 10, "MaxAttempts": 24 * 360}  # for a day
_IS_NEW = Attr("pk").not_exists() & Attr("hash").not_exists()  # in either table


def restore(
    stage: StageName,
    table: Annotated[str, typer.Option(help="Its id in template.yaml.")] = ANIMALS,
    at: datetime | None = None,
) -> str:
    """Restore a table as it was at a given time (UTC; by default the latest) into a new one."""
    source = stage.outputs()[f"{table}Name"]
    target = f"{stage.stack}-{table}-{datetime.now(UTC):%Y%m%d%H%M%S}"
    moment: dict[str, Any] = {"UseLatestRestorableTime": True}
    if at:
        moment = {"RestoreDateTime": at.replace(tzinfo=UTC)}
    print(f"DynamoDB is restoring {source} into {target}. This command waits for it:")
    print(f"make cut-over STAGE={stage.name} TABLE={target}", flush=True)
    dynamodb = _dynamodb().meta.client
    # The SDK repeats a call whose answer was lost.
    with suppress(dynamodb.exceptions.TableAlreadyExistsException):
        dynamodb.restore_table_to_point_in_time(
            SourceTableName=source, TargetTableName=target, **moment
        )
    return target


def cut_over(stage: StageName, name: str, *, carry: bool = True) -> None:
    """Make a stage use a restored table, or its own again; safe to repeat.

    Once closed, the table left behind takes no additions, whichever function still uses it.
    """
    table = name.removeprefix(f"{stage.stack}-").partition("-")[0]
    if table not in (ANIMALS, KEYS):
        raise DeploymentError(f"{name} is not a table of {stage.name}")
    own = stage.resources()[table]
    if name != own:
        _wait_and_protect(own, name)
    stage.wait()
    new, in_use = _table(name), _table(stage.outputs()[f"{table}Name"])
    left = _predecessors(table, new, in_use)
    if table == ANIMALS:
        _close(left, new)
    _take_over(table, left, new, carry=carry)
    if table == ANIMALS:
        # It may have been closed, or restored from one that was.
        new.update_item(Key=_COUNTER, UpdateExpression="REMOVE closed")
    with release.fetched(stage, release.released(stage)) as artifact:
        tables = {**stage.restored_tables(), table: name}
        release.install(stage, artifact, canary=False, tables=tables)
    if table == KEYS:  # what was issued or revoked during the deployment
        _take_over(table, left, new, carry=carry)


def _wait_and_protect(own: str, restored: str) -> None:
    """Wait for a restored table, and give it the protection and the expiry of the stack's own."""
    dynamodb = _dynamodb().meta.client
    # A new table is not visible at once; the waiter would wait for a wrong name for a day.
    not_visible = dynamodb.exceptions.ResourceNotFoundException
    for attempt in stamina.retry_context(on=not_visible, attempts=None, timeout=60):
        with attempt:
            dynamodb.describe_table(TableName=restored)
    dynamodb.get_waiter("table_exists").wait(
        TableName=restored, WaiterConfig=_RESTORE_POLLS
    )
    not_yet = (
        dynamodb.exceptions.ContinuousBackupsUnavailableException,
        dynamodb.exceptions.LimitExceededException,
        dynamodb.exceptions.ResourceInUseException,
    )
    for attempt in stamina.retry_context(on=not_yet, attempts=None, timeout=600):
        with attempt:
            dynamodb.update_continuous_backups(
                TableName=restored,
                PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
            )
            dynamodb.update_table(TableName=restored, DeletionProtectionEnabled=True)
            if _expiry(restored) != _expiry(own):
                wanted = {"Enabled": True, "AttributeName": _expiry(own)}
                dynamodb.update_time_to_live(
                    TableName=restored, TimeToLiveSpecification=wanted
                )


def _expiry(name: str) -> Any:
    answer = _dynamodb().meta.client.describe_time_to_live(TableName=name)
    return answer["TimeToLiveDescription"].get("AttributeName")


def _predecessors(table: str, new: Any, in_use: Any) -> list[Any]:
    """Return the tables that may hold what a table lacks.

    They are the table in use; the one that a repeated cut-over has left, as the new table's tag
    says; and the one for which the table in use was closed, if its deployment was taken back.
    """
    dynamodb, arn = new.meta.client, new.table_arn
    if new != in_use:
        tag = {"Key": "follows", "Value": in_use.name}
        dynamodb.tag_resource(ResourceArn=arn, Tags=[tag])
    tags = dynamodb.list_tags_of_resource(ResourceArn=arn)["Tags"]
    names = {in_use.name, *(tag["Value"] for tag in tags if tag["Key"] == "follows")}
    if table == ANIMALS:
        names.add(_counter(in_use).get("closed", new.name))
    return [_table(name) for name in sorted(names - {new.name})]


def _close(tables: list[Any], successor: Any) -> None:
    """Stop tables from giving out ids, as another takes their place; wait for what has begun."""
    for table in tables:
        table.update_item(
            Key=_COUNTER,
            UpdateExpression="SET closed = :successor",
            ExpressionAttributeValues={":successor": successor.name},
        )
    if tables:
        time.sleep(_DRAIN_S)


def _take_over(table: str, left: list[Any], new: Any, *, carry: bool) -> None:
    for old in left:
        if carry and table == ANIMALS:
            _carry_animals_over(old, new)
        elif carry:
            _carry_keys_over(old, new)
        if table == ANIMALS:
            _never_repeat_ids(new, _last_id(old))


def _carry_animals_over(old: Any, new: Any) -> None:
    # A creation that was under way at the restored moment had taken its id, and wrote its animal
    # afterwards.
    first = _last_id(new) - _UNDER_WAY
    recent = Attr("id").gt(first) | Attr("pk").begins_with("idempotency#")
    there = {(item["pk"], item["id"]) for item in _items(new, FilterExpression=recent)}
    for item in _items(old, FilterExpression=recent):
        if (item["pk"], item["id"]) not in there:
            _add(new, item)


def _carry_keys_over(old: Any, new: Any) -> None:
    for item in _items(old):
        if "revoked" in item:  # a key that was revoked must not come back
            new.put_item(Item=item)
        else:
            _add(new, item)


def _add(table: Any, item: Mapping[str, Any]) -> None:
    with suppress(table.meta.client.exceptions.ConditionalCheckFailedException):
        table.put_item(Item=item, ConditionExpression=_IS_NEW)


def _never_repeat_ids(table: Any, last: int) -> None:
    """Set a table's counter to a number, unless it is already beyond it."""
    with suppress(table.meta.client.exceptions.ConditionalCheckFailedException):
        table.update_item(
            Key=_COUNTER,
            UpdateExpression="SET #value = :last",
            ConditionExpression="attribute_not_exists(#value) OR #value < :last",
            ExpressionAttributeNames={"#value": "value"},
            ExpressionAttributeValues={":last": last},
        )


def _last_id(table: Any) -> int:
    return int(_counter(table).get("value", 0))


def _counter(table: Any) -> dict[str, Any]:
    answer = table.get_item(Key=_COUNTER, ConsistentRead=True)
    item: dict[str, Any] = answer.get("Item", {})
    return item


def _dynamodb() -> Any:
    return boto3.resource("dynamodb")


def _table(name: str) -> Any:
    return _dynamodb().Table(name)


def _items(table: Any, **options: Any) -> Iterator[Mapping[str, Any]]:
    paginator = table.meta.client.get_paginator("scan")
    for page in paginator.paginate(
        TableName=table.name, ConsistentRead=True, **options
    ):
        yield from page["Items"]
