"""Put back what was damaged in a stage's table, from a copy of the table as it was."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import stamina
import typer

from tools.deployment.repair import Change, Comparison, Damage, Repair
from tools.deployment.stage import DeploymentError, StageName

ANIMALS: Final = "AnimalsTable"
EXPIRY = {ANIMALS: "expires"}  # as template.yaml has it
_DONE = {
    "same": "nothing to do",
    "missing": "put back",
    "different": "put back as they were",
    "newer": "kept",
    "removed": "named as damage: deleted",
    "given again": "the ids belong to other animals since: left",
}
_LISTED = 20
_KEPT_DAYS = 7
_POLL_S = 20
_INVISIBLE_S = 60
_say = partial(print, flush=True)


def restore(  # noqa: PLR0913 - one argument for each option
    stage: StageName,
    at: Annotated[
        str, typer.Option(help="A moment before the damage, with its time zone.")
    ] = "",
    table: Annotated[
        Literal["AnimalsTable", "ApiKeysTable"],
        typer.Option(help="Its id in template.yaml."),
    ] = ANIMALS,
    *,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write what is otherwise only listed.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the copy.")] = False,
    created_by: Annotated[
        str, typer.Option(help="Delete what is newer and was added with this key's id.")
    ] = "",
    between: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Delete what is newer and was added in this time."),
    ] = None,
    put_back: Annotated[
        Path | None, typer.Option(help="Put back what this file says was deleted.")
    ] = None,
) -> None:
    """Put back what was damaged in a table after a moment; without one, check the table itself."""
    moment = _time(at) if at else None
    damage = Damage(
        created_by,
        between and (_time(between[0]).timestamp(), _time(between[1]).timestamp()),
    )
    if damage != Damage() and (table != ANIMALS or not moment):
        raise DeploymentError("--created-by and --between need AT, and are of animals")
    name = stage.outputs().get(f"{table}Name")
    if not name:
        raise DeploymentError(f"this account and region have no stack of {stage.name}")
    client = stage.client("dynamodb")
    _say(f"{stage.name}, {client.meta.region_name}, as {stage.caller()}: {name}")
    repair = Repair(client, name, say=_say)
    with _telling_what_is_left(repair):
        if not _exists(repair, is_at=bool(at), apply=apply):
            return
        _protect(repair, EXPIRY.get(table), stage.tags(), apply=apply)
        if put_back:
            _put_back(repair, put_back, f"{stage.stack}-{table}-copy-", apply=apply)
        elif moment:
            _say(f"as it was at {moment:%Y-%m-%dT%H:%M:%SZ} (UTC)")
            repair.copy = f"{stage.stack}-{table}-copy-{moment:%Y%m%dT%H%M%SZ}"
            _copy(repair, moment)
            _repair(repair, table, moment, damage, apply=apply)
            if apply and not keep:
                _delete_copy(repair)
            else:
                _say(
                    f"{repair.copy} stays. With --apply, and without --keep, it is deleted."
                )
        elif table == ANIMALS:
            _check_counter(repair, apply=apply)


def _time(text: str) -> datetime:
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo:
            return moment.astimezone(UTC)
    raise DeploymentError(
        f"{text!r} is not a time with its zone, such as 2027-01-31T02:30:00Z or "
        "2027-01-31T04:30:00+02:00"
    )


@contextmanager
def _telling_what_is_left(repair: Repair) -> Iterator[None]:
    """Say what an interruption or a failure leaves behind."""
    try:
        yield
    except BaseException:
        copy = f"; the copy, if it was begun, is {repair.copy}" if repair.copy else ""
        _say(f"Not finished: {repair.written} items were written{copy}.")
        _say("Repeat the same command: it goes on from here, and repeating is safe.")
        raise


def _exists(repair: Repair, *, is_at: bool, apply: bool) -> bool:
    """Tell whether the table in use exists; restore a deleted one from its backup."""
    client, name = repair.client, repair.table
    try:
        client.describe_table(TableName=name)
    except client.exceptions.ResourceNotFoundException:
        answer = client.list_backups(TableName=name, BackupType="SYSTEM")
        if not (backups := answer["BackupSummaries"]):
            raise DeploymentError(f"{name} does not exist, and has no backup") from None
        backup = max(backups, key=itemgetter("BackupCreationDateTime"))
        made = backup["BackupCreationDateTime"]
        _say(f"It was deleted; DynamoDB has a backup of {made:%Y-%m-%dT%H:%M:%S%z}.")
        if is_at:
            raise DeploymentError(
                "Repeat without AT: earlier moments are gone with the table."
            ) from None
        if not apply:
            _say("With --apply it is restored from that.")
            return False
        with suppress(*_in_use(client)):
            client.restore_table_from_backup(
                TargetTableName=name, BackupArn=backup["BackupArn"]
            )
    _wait(client, name)
    return True


def _in_use(client: Any) -> tuple[type[Exception], ...]:
    """Return the errors of a restore that somebody, or a lost request, has begun."""
    errors = client.exceptions
    return errors.TableAlreadyExistsException, errors.TableInUseException


def _wait(client: Any, name: str) -> None:
    """Wait until a table is there, and say so from time to time."""
    begun = time.monotonic()
    while True:
        seconds = time.monotonic() - begun
        try:
            status = client.describe_table(TableName=name)["Table"]["TableStatus"]
        except client.exceptions.ResourceNotFoundException:
            # A new table is not visible at once.
            if seconds > _INVISIBLE_S:
                raise
            status = "not visible yet"
        if status == "ACTIVE":
            return
        _say(f"{name} is {status}, after {seconds:.0f} s")
        time.sleep(_POLL_S)


def _protect(
    repair: Repair, expiry: str | None, tags: list[dict[str, str]], *, apply: bool
) -> None:
    """Give the table in use what a restore does not, if it lacks any of it."""
    client, name = repair.client, repair.table
    table = client.describe_table(TableName=name)["Table"]
    backups = client.describe_continuous_backups(TableName=name)
    recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    life = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    lacking: dict[str, Callable[[], Any]] = {}
    if not table.get("DeletionProtectionEnabled"):
        lacking["deletion protection"] = lambda: client.update_table(
            TableName=name, DeletionProtectionEnabled=True
        )
    if recovery["PointInTimeRecoveryStatus"] != "ENABLED":
        lacking["point-in-time recovery"] = lambda: client.update_continuous_backups(
            TableName=name,
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
        )
    if life.get("AttributeName") != expiry:
        lacking["time to live"] = lambda: client.update_time_to_live(
            TableName=name,
            TimeToLiveSpecification={"Enabled": True, "AttributeName": expiry},
        )
    if lacking:
        lacking["tags"] = lambda: client.tag_resource(
            ResourceArn=table["TableArn"], Tags=tags
        )
    not_yet = (
        client.exceptions.ContinuousBackupsUnavailableException,
        client.exceptions.LimitExceededException,
        client.exceptions.ResourceInUseException,
    )
    for setting, set_it in lacking.items():
        _say(f"it lacks {setting}{': set' if apply else ''}")
        if apply:
            stamina.retry(on=not_yet, attempts=None, timeout=600)(set_it)()


def _put_back(repair: Repair, file: Path, prefix: str, *, apply: bool) -> None:
    """Put back what a file says was deleted from this table."""
    if not file.name.startswith(prefix):
        raise DeploymentError(f"the name of a file for this table begins with {prefix}")
    comparison = Comparison()
    for line in file.read_text("utf-8").splitlines():
        change = json.loads(line)
        if change["verdict"] == "removed":
            comparison.add([Change("missing", None, change["found"])])
    _show(comparison)
    if apply:
        left = repair.apply(comparison)
        _say(f"{repair.written} put back; {len(left)} other items are in their place")


def _copy(repair: Repair, moment: datetime) -> None:
    """Let DynamoDB make the copy, or find it."""
    client = repair.client
    with suppress(*_in_use(client)):
        client.restore_table_to_point_in_time(
            SourceTableName=repair.table,
            TargetTableName=repair.copy,
            RestoreDateTime=moment,
            GlobalSecondaryIndexOverride=[],
        )
    _wait(client, repair.copy)
    table = client.describe_table(TableName=repair.copy)["Table"]
    end = datetime.now(UTC) + timedelta(days=_KEPT_DAYS)
    tags = {
        "purpose": f"to repair {repair.table}",
        "moment": moment.isoformat(),
        "delete-after": f"{end:%Y-%m-%d}",
    }
    client.tag_resource(
        ResourceArn=table["TableArn"],
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
    )


def _repair(
    repair: Repair, table: str, moment: datetime, damage: Damage, *, apply: bool
) -> None:
    """Compare, say what was found, and write it."""
    if table != ANIMALS:
        comparison = repair.compare_keys()
    else:
        if apply:  # at once: until then ids may be given again
            repair.raise_counter(repair.counter(repair.copy))
        comparison = repair.compare_animals(moment.timestamp(), damage, time.time())
    _show(comparison)
    _save(comparison, Path(f"{repair.copy}.jsonl"))
    if not apply:
        _say("Nothing was written. With ARGS=--apply all this is done.")
        return
    left = repair.apply(comparison)
    _say(f"{repair.written} items were written.")
    if left:
        raise DeploymentError(f"{len(left)} have changed since they were compared")


def _show(comparison: Comparison) -> None:
    for verdict, done in _DONE.items():
        if count := comparison.counts[verdict]:
            _say(f"{count:>10,} {verdict} ({done})")
    members: Counter[str] = Counter()
    for change in comparison.changes:
        if change.verdict == "different":
            members.update(change.members)
    if members:
        _say(f"what differs: {dict(members)}")
    for change in comparison.changes[:_LISTED]:
        item = change.found or change.wanted or {}
        name = (
            item["hash"]["S"][:12]
            if "hash" in item
            else f"{item['pk']['S']} {item['id']['N']}"
        )
        _say(f"  {change.verdict}: {name} {item.get('label', {}).get('S', '')}")


def _save(comparison: Comparison, file: Path) -> None:
    """Add what is to be overwritten, deleted or left to a file."""
    lines = [
        json.dumps(change._asdict(), default=str) + "\n"
        for change in comparison.changes
        if change.found
    ]
    if lines:
        with file.open("a", encoding="utf-8") as out:
            out.writelines(lines)
        _say(f"{len(lines)} items as they are now were added to {file}")


def _delete_copy(repair: Repair) -> None:
    client = repair.client
    errors = client.exceptions
    with suppress(errors.ResourceNotFoundException, errors.ResourceInUseException):
        client.delete_table(TableName=repair.copy)
    _say(f"{repair.copy} was deleted.")


def _check_counter(repair: Repair, *, apply: bool) -> None:
    """Raise the counter to the highest id, if it is below it."""
    last = repair.counter(repair.table)
    highest = max(repair.animals(repair.table, last), default=last)
    _say(f"the counter is at {last}, the highest id is {highest}")
    if apply and repair.raise_counter(highest):
        _say(f"the counter was set to {highest}")
