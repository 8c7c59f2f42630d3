"""Restore a table as it was into a copy."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any

import boto3
import typer

from tools.deployment.stage import StageName

ANIMALS, KEYS = "AnimalsTable", "ApiKeysTable"


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
    print(f"DynamoDB is restoring {source} into {target}.")
    dynamodb = boto3.client("dynamodb")
    # The SDK repeats a call whose answer was lost.
    with suppress(dynamodb.exceptions.TableAlreadyExistsException):
        dynamodb.restore_table_to_point_in_time(
            SourceTableName=source, TargetTableName=target, **moment
        )
    return target
