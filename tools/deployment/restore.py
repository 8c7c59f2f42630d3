"""Put back what was damaged in a stage's table, from a copy of the table as it was."""

import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import stamina
import typer

from tools.deployment.repair import WRITTEN, Change, Damage, Repair
from tools.deployment.stage import DeploymentError, Stage, StageName
from tools.local.folder import write_private

ANIMALS: Final = "AnimalsTable"
ALWAYS = ("1970-01-01T00Z", "9999-12-31T00Z")
_DONE = {
    "same": "nothing to do",
    "missing": "put back",
    "different": "put back as it was",
    "newer": "kept",
    "removed": "named as damage: deleted",
    "given again": "the id belongs to another animal since: left",
}
_LISTED = 20
_NAMES = ("hash", "label", "pk", "id")
_REPORTED = 10_000
_KEPT_DAYS = 7
_POLL_S = 20
# A thousand creations a second would take thirty years. Above 2^63 - 1, ids break the interface.
_NEVER_GIVEN = 10**12
_say = partial(print, flush=True)


def restore(  # noqa: C901, PLR0912, PLR0913 - one argument and branch for each option
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
    at_once: Annotated[
        int, typer.Option(min=1, help="Requests under way at once.")
    ] = 8,
) -> None:
    """Put back what was damaged in a table after a moment; without one, check the table itself."""
    damage = Damage()
    if created_by or between:
        begin, end = map(_time, between or ALWAYS)
        damage = Damage(created_by, begin.timestamp(), end.timestamp())
    if damage != Damage() and (table != ANIMALS or not at):
        raise DeploymentError("--created-by and --between need AT, and are of animals")
    if put_back and at:
        raise DeploymentError("--put-back takes no AT")
    moment = _time(at) if at else None
    stage.announce()
    name = stage.deployed()[f"{table}Name"]
    prefix = f"{stage.stack}-{table}-copy-"
    changes = _deleted(put_back, prefix) if put_back else []
    repair = Repair(stage.client("dynamodb"), name, at_once)
    try:
        if apply and not moment:
            _revive(stage, repair, has_expiry=table == ANIMALS)
        else:
            _require_table(repair)
        if moment:
            repair.copy = f"{prefix}{moment:%Y%m%dT%H%M%SZ}"
            _copy(stage, repair, moment)
        if table == ANIMALS:
            _check_counter(repair, changes, apply=apply)
        if moment:
            changes += _compare(repair, table, moment, damage)
        due = [each for each in changes if each.verdict in WRITTEN]
        if apply:
            _apply(repair, due, keep=keep)
        else:
            _say(f"Nothing was written: --apply does it. {len(due)} items to write.")
            if not keep and repair.copy:
                _say(f"--apply deletes the copy, which costs money: {repair.copy}")
    except BaseException:
        _say(f"Not finished: {repair.written} items were written. Copy: {repair.copy}")
        _say("Repeat the same command: it goes on from here, and repeating is safe.")
        raise
    conflicts = len(changes) - len(due)
    if apply and conflicts:
        raise DeploymentError(f"{conflicts} items are left: their ids were given again")


def _time(text: str) -> datetime:
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo:
            return moment.astimezone(UTC)
    raise DeploymentError(
        f"{text!r} is not a time with its zone, such as 2027-01-31T02:30:00Z or "
        "2027-01-31T04:30:00+02:00"
    )


def _deleted(file: Path, prefix: str) -> list[Change]:
    """Read what a repair of this table deleted."""
    if not file.name.startswith(prefix):
        raise DeploymentError(f"the name of a file for this table begins with {prefix}")
    lines = map(json.loads, file.read_text("utf-8").splitlines())
    return [
        Change("missing", {}, line["found"])
        for line in lines
        if line["verdict"] == "removed"
    ]


def _require_table(repair: Repair) -> None:
    if _status(repair.client, repair.table) == "absent":
        raise DeploymentError(
            f"{repair.table} was deleted, and its earlier moments with it: --apply without AT "
            "restores it as it was then"
        )


def _copy(stage: Stage, repair: Repair, moment: datetime) -> None:
    """Let DynamoDB make the copy, or find it."""
    client = repair.client
    _say(f"{repair.table} as it was at {moment:%Y-%m-%dT%H:%M:%SZ} (UTC)")
    begin = partial(
        client.restore_table_to_point_in_time,
        SourceTableName=repair.table,
        TargetTableName=repair.copy,
        RestoreDateTime=moment,
        GlobalSecondaryIndexOverride=[],
    )
    _wait(stage, client, repair.copy, begin)
    end = datetime.now(UTC) + timedelta(days=_KEPT_DAYS)
    tag = {"Key": "delete-after", "Value": f"{end:%Y-%m-%d}"}
    table = client.describe_table(TableName=repair.copy)["Table"]
    client.tag_resource(ResourceArn=table["TableArn"], Tags=[tag])


def _status(client: Any, name: str) -> str:
    try:
        return str(client.describe_table(TableName=name)["Table"]["TableStatus"])
    except client.exceptions.ResourceNotFoundException:
        return "absent"


def _wait(stage: Stage, client: Any, name: str, begin: Callable[[], Any]) -> None:
    """Wait until a table is there, and begin to restore it while it is not."""
    # A new table is not visible at once; or somebody else has begun.
    errors = client.exceptions
    begun = (errors.TableAlreadyExistsException, errors.TableInUseException)
    while (status := _status(client, name)) != "ACTIVE":
        _say(f"{datetime.now(UTC):%H:%M:%S} {name} is {status}")
        if status == "absent":
            with suppress(*begun):
                begin()
        stage.sleep(_POLL_S)


def _revive(stage: Stage, repair: Repair, *, has_expiry: bool) -> None:
    """Restore the table if it was deleted, and set what a restore does not."""
    client, name = repair.client, repair.table

    def begin() -> None:
        answer = client.list_backups(TableName=name, BackupType="SYSTEM")
        if not answer["BackupSummaries"]:
            raise DeploymentError(f"{name} does not exist, and has no backup")
        backup = max(
            answer["BackupSummaries"], key=itemgetter("BackupCreationDateTime")
        )
        _say(f"It was deleted: restored from {backup['BackupCreationDateTime']}.")
        client.restore_table_from_backup(
            TargetTableName=name, BackupArn=backup["BackupArn"]
        )

    def protect() -> None:
        life = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        if has_expiry and "AttributeName" not in life:
            client.update_time_to_live(
                TableName=name,
                TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"},
            )
        client.update_continuous_backups(
            TableName=name,
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
        )
        table = client.describe_table(TableName=name)["Table"]
        if not table.get("DeletionProtectionEnabled"):
            client.update_table(TableName=name, DeletionProtectionEnabled=True)

    _wait(stage, client, name, begin)
    _say("setting deletion protection, point-in-time recovery and time to live")
    # DynamoDB takes one change at a time, and recovery some time after a restore.
    errors = client.exceptions
    busy = (
        errors.ContinuousBackupsUnavailableException,
        errors.LimitExceededException,
        errors.ResourceInUseException,
    )
    stamina.retry(on=busy, attempts=None, timeout=600)(protect)()


def _check_counter(repair: Repair, changes: list[Change], *, apply: bool) -> None:
    """Raise the counter to the highest id, at once: until then ids may be given again."""
    ids = [repair.last_id(each) for each in (repair.table, repair.copy) if each]
    last = max(ids + [int(each.pet_id) for each in changes])
    _say(f"the counter is at {repair.counter(repair.table)}, the highest id is {last}")
    if last >= _NEVER_GIVEN:
        raise DeploymentError(
            f"{last} is too high for an id or a counter: correct or delete that item first"
        )
    if apply:
        repair.raise_counter(last)


def _compare(
    repair: Repair, table: str, moment: datetime, damage: Damage
) -> list[Change]:
    """Say what was found, save it, and return what is to be written or left."""
    times = moment.timestamp(), time.time()
    compared = repair.compare_records("hash", *times, {})
    if table == ANIMALS:
        compared = repair.compare_animals(*times, damage)
    counts: Counter[str] = Counter()
    changes = []
    for change in compared:
        members = ""
        if change.verdict == "different":
            members = f": {', '.join(change.members)}"
        counts[f"{change.verdict}{members} ({_DONE[change.verdict]})"] += 1
        if change.verdict not in {"same", "newer"}:
            changes.append(change)
        if counts.total() % _REPORTED == 0:
            _say(f"compared {counts.total()}")
    for text, count in counts.items():
        _say(f"{count:>10,} {text}")
    _list(changes, Path(f"{repair.copy}-{time.time_ns()}.jsonl"))
    return changes


def _list(changes: list[Change], file: Path) -> None:
    """Print the first changes, and save all of them."""
    for change in changes[:_LISTED]:
        item = change.found or change.wanted
        key = {name: item[name] for name in _NAMES if name in item}
        _say(f"  {change.verdict}: {key}")
    lines = [json.dumps(each._asdict(), default=str) for each in changes]
    if lines:
        write_private(file, "\n".join(lines))
        _say(f"{len(lines)} items as they are and as they would become are in {file}")


def _apply(repair: Repair, changes: list[Change], *, keep: bool) -> None:
    """Write what was compared, and delete the copy."""
    left = repair.apply(changes)
    _say(f"{repair.written} items were written.")
    if left:
        raise DeploymentError(f"{left} have changed since they were compared")
    if repair.copy and not keep:
        errors = repair.client.exceptions
        # Somebody else may have deleted it.
        with suppress(errors.ResourceNotFoundException, errors.ResourceInUseException):
            repair.client.delete_table(TableName=repair.copy)
        _say(f"{repair.copy} was deleted.")
