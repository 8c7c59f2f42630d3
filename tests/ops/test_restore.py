"""Repairs of a stage's tables: what they list, restore and remove."""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import Any
from unittest.mock import Mock, patch

import pytest
from botocore.exceptions import ReadTimeoutError

from ops.restore import apply, counter, find, plan, remove
from ops.stage import Stage, StageError
from tests.support.aws import ANSWERS, SESSION, Account

COPIED_AT = 1_800_000_000  # 15 January 2027, 08:00 UTC
# DynamoDB's clock is 50 s ahead of this computer's.
DATE = {"HTTPHeaders": {"date": "Fri, 15 Jan 2027 08:01:00 GMT"}}
RAISED = 32_774_460_000  # 1,000 for each second from the beginning of 2026 to DATE
COUNTER: dict[str, Any] = {"pk": "counter", "id": 0, "value": 5}
RECORD_OF_MIA = {
    "pk": "idempotency#a",
    "id": 0,
    "createdId": 1,
    "expires": COPIED_AT + 60,
}
MIA: dict[str, Any] = {
    "pk": "pet",
    "id": 1,
    "name": "Mia",
    "categoryId": 1,
    "createdAt": COPIED_AT - 5,
}
# Another client's animal: after the copy was made, the id was assigned again.
ZOE_WITH_MIAS_ID = MIA | {"name": "Zoe", "createdAt": COPIED_AT}
UNREADABLE: dict[str, Any] = {"pk": "pet", "id": 2, "name": {b"\xfe"}}
ADDED_BY_THIEF = MIA | {"id": 3, "createdBy": "thief"}
MISSING, CHANGED = Path("copy/missing.jsonl"), Path("copy/changed.jsonl")
FOUND = Path("found.jsonl")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Mock:
    clock = Mock(**{"time.return_value": COPIED_AT + 10})
    monkeypatch.setattr("ops.restore.time", clock)
    return clock


@cache
def open_table(name: str) -> Any:
    return SESSION.resource("dynamodb").Table(name)


def put(table: str, *items: dict[str, Any]) -> None:
    for item in items:
        open_table(table).put_item(Item=item)


def items(table: str) -> Any:
    items = open_table(table).scan()["Items"]
    # After `make starter` the partition key differs, so sort the items by their ids.
    return sorted(items, key=lambda item: item.get("id", 0))


def make_copy(account: Account, table: str, *items: dict[str, Any]) -> None:
    """Make a table's copy, which has these items."""
    account.client("dynamodb").restore_table_to_point_in_time(
        SourceTableName=table, TargetTableName="copy"
    )
    moment = datetime.fromtimestamp(COPIED_AT, UTC)
    summary = {"SourceTableArn": f"table/{table}", "RestoreDateTime": moment}
    account.answers["DescribeTable"] = {
        "Table": {"RestoreSummary": summary},
        "ResponseMetadata": DATE,
    }
    put("copy", *items)


@pytest.fixture
def stage(deployed: Account) -> Stage:
    """A stage that has lost all animals, and a copy of their table from before."""
    make_copy(deployed, "AnimalsTable", COUNTER, RECORD_OF_MIA, MIA)
    return deployed.stage


def test_animal_is_restored_before_its_idempotency_record(
    stage: Stage, clock: Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    put("AnimalsTable", COUNTER | {"value": 6})

    plan(stage, "copy")
    assert MISSING.read_text() == (
        '{"table":"AnimalsTable","current":{},"copied":{"pk":{"S":"pet"},"id":{"N":"1"},'
        '"name":{"S":"Mia"},"categoryId":{"N":"1"},"createdAt":{"N":"1799999995"}}}\n'
    )
    assert MISSING.parent.stat().st_mode & 0o777 == 0o700
    printed = capsys.readouterr().out
    assert printed == (
        "copy, AnimalsTable as it was at 2027-01-15 08:00:00+00:00: "
        "{'missing': 1, 'sound': 1, 'waiting': 1}\n"
    )
    # A partition serves 3,000 reads and 1,000 writes a second; the ten threads together
    # make half as many.
    clock.sleep.assert_called_with(10 / 1500)

    apply(stage, MISSING)
    clock.sleep.assert_called_with(10 / 500)
    rmtree("copy")
    plan(stage, "copy")
    apply(stage, MISSING)
    assert items("AnimalsTable")[1:] == [RECORD_OF_MIA, MIA]


def test_changed_animal_is_restored(stage: Stage) -> None:
    mia = MIA | {"sizes": {b"\xfe"}, "tags": {"a"}, "token": "5eed"}
    damage = {
        "revoked": 1,
        "token": "5eed",
        "createdAt": 1,
        "hash": [b"\xfe"],
        "sizes": {b"\xff"},
    }
    damage |= {f"attribute {number}": number for number in range(400)}
    put("copy", mia)
    put("AnimalsTable", COUNTER, RECORD_OF_MIA, MIA | damage)
    plan(stage, "copy")

    client = stage.client("dynamodb")
    with patch.object(client, "put_item", wraps=client.put_item) as put_item:
        apply(stage, CHANGED)
        apply(stage, CHANGED)

    assert items("AnimalsTable") == [COUNTER, RECORD_OF_MIA, mia]
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
    assert len(put_item.call_args.kwargs["ConditionExpression"]) <= 4096


@pytest.mark.parametrize(
    ("mia", "zoe"),
    [
        (MIA, ZOE_WITH_MIAS_ID),
        (MIA | {"token": "5eed"}, MIA | {"name": "Zoe", "token": "ba11"}),
    ],
)
def test_animal_whose_id_is_taken_is_listed_in_others_jsonl(
    mia: dict[str, Any], zoe: dict[str, Any], stage: Stage
) -> None:
    put("copy", mia)
    put("AnimalsTable", COUNTER, zoe)

    plan(stage, "copy")
    (others,) = Path("copy").iterdir()  # the record waits for its animal
    assert others.name == "others.jsonl"

    apply(stage, others)
    assert items("AnimalsTable") == [COUNTER, mia]


def test_animal_with_a_changed_time_is_restored(stage: Stage) -> None:
    put("AnimalsTable", COUNTER, MIA | {"createdAt": COPIED_AT})
    plan(stage, "copy")
    apply(stage, CHANGED)
    assert items("AnimalsTable") == [COUNTER, MIA]


def test_plan_leaves_out_an_expired_record(stage: Stage, clock: Mock) -> None:
    put("AnimalsTable", COUNTER, MIA)
    clock.time.return_value = COPIED_AT + 60
    plan(stage, "copy")
    assert not MISSING.exists()


def test_key_that_has_changed_since_the_plan_is_left_alone(deployed: Account) -> None:
    make_copy(deployed, "ApiKeysTable", {"hash": "a"}, {"hash": "b"}, {"hash": "c"})
    revoked_a, b = (
        {"hash": "a", "revoked": 1, "createdAt": 1},
        {"hash": "b", "label": 1},
    )
    c = {"hash": "c", "label": 1}
    put("ApiKeysTable", revoked_a, b, c)
    plan(deployed.stage, "copy")
    put("ApiKeysTable", b | {"revoked": 1}, c | {"label": 2})

    with pytest.raises(StageError, match="0 lines are done, 2 are skipped"):
        apply(deployed.stage, CHANGED)
    assert '"revoked":{"N":"1"}' in Path("copy/revoked.jsonl").read_text()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, RAISED),
        ("five", RAISED),
        (10**12, RAISED),
        (RAISED + 1, RAISED + 1),
    ],
)
def test_counter_is_repaired_unless_it_is_valid_and_high_enough(
    stage: Stage, value: Any, expected: int
) -> None:
    put("AnimalsTable", COUNTER | {"value": value})
    counter(stage)
    assert items("AnimalsTable") == [COUNTER | {"value": expected}]


@pytest.mark.parametrize("value", [4, "five"])
def test_plan_is_refused_while_the_counter_is_wrong(stage: Stage, value: Any) -> None:
    put("AnimalsTable", COUNTER | {"value": value})
    with pytest.raises(StageError, match="animal-store restore counter production"):
        plan(stage, "copy")


def test_failed_plan_is_removed_and_complete_plan_is_kept(stage: Stage) -> None:
    put("AnimalsTable", COUNTER)
    ANSWERS["Scan"] = ReadTimeoutError(endpoint_url="")
    with pytest.raises(ReadTimeoutError):
        plan(stage, "copy")
    assert [*Path.cwd().glob("copy*")] == []

    del ANSWERS["Scan"]
    plan(stage, "copy")
    with pytest.raises(StageError, match="has an earlier plan; first: rm -r copy"):
        plan(stage, "copy")


def test_plan_from_a_table_that_is_not_a_copy_is_refused(deployed: Account) -> None:
    with pytest.raises(StageError, match="AnimalsTable is not a copy of a table"):
        plan(deployed.stage, "AnimalsTable")


@pytest.mark.parametrize(
    "line",
    [
        b'{"table": "others", "current": {}, "copied": {}}',
        b'{"table": "AnimalsTable", "current": null, "copied": {}}',
        b'{"table": "AnimalsTable", "current": {}, "copied": {}, "remove": true}',
        b"null",
        b"",
        '{"table": "AnimalsTable", "current": {}, "copied": {}}'.encode("utf-16"),
    ],
)
def test_file_with_a_wrong_line_is_refused_as_a_whole(
    stage: Stage, line: bytes
) -> None:
    put("AnimalsTable", COUNTER)
    plan(stage, "copy")
    MISSING.write_bytes(MISSING.read_bytes() * 1_000 + line + b"\n")

    with pytest.raises(StageError, match="line 1001: "):
        apply(stage, MISSING)

    assert items("AnimalsTable") == [COUNTER]


def test_lines_that_cannot_be_applied_are_skipped_and_counted(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    put("AnimalsTable", COUNTER)
    plan(stage, "copy")
    line = '{"table": "AnimalsTable", "current": {}, "copied": {}}\n'
    MISSING.write_text(line + MISSING.read_text())

    with pytest.raises(StageError, match="1 lines are done, 1 are skipped"):
        apply(stage, MISSING)
    assert "line 1: " in capsys.readouterr().out
    assert items("AnimalsTable") == [COUNTER, MIA]

    put("AnimalsTable", ZOE_WITH_MIAS_ID)
    with pytest.raises(StageError, match="0 lines are done, 2 are skipped"):
        apply(stage, MISSING)
    assert items("AnimalsTable") == [COUNTER, ZOE_WITH_MIAS_ID]

    ANSWERS["PutItem"] = ReadTimeoutError(endpoint_url="")
    with pytest.raises(StageError, match="0 lines are done, 2 are skipped"):
        apply(stage, MISSING)


@pytest.mark.parametrize(
    ("created_by", "left"),
    [("", [COUNTER, MIA, ADDED_BY_THIEF]), ("thief", [COUNTER, MIA, UNREADABLE])],
)
def test_animals_printed_by_find_are_removed(
    stage: Stage,
    capsys: pytest.CaptureFixture[str],
    created_by: str,
    left: list[dict[str, Any]],
) -> None:
    put("AnimalsTable", COUNTER, MIA, UNREADABLE, ADDED_BY_THIEF)

    find(stage, created_by)
    FOUND.write_text(capsys.readouterr().out)
    remove(stage, FOUND)
    remove(stage, FOUND)

    assert items("AnimalsTable") == left


@pytest.mark.parametrize("repaired", ["status", "createdAt", "createdBy", "token"])
def test_animal_that_was_repaired_meanwhile_is_not_removed(
    stage: Stage, capsys: pytest.CaptureFixture[str], repaired: str
) -> None:
    put("AnimalsTable", UNREADABLE)
    find(stage)
    FOUND.write_text(capsys.readouterr().out)
    put("AnimalsTable", UNREADABLE | {repaired: "x"})

    with pytest.raises(StageError, match="0 lines are done, 1 are skipped"):
        remove(stage, FOUND)

    assert items("AnimalsTable") == [UNREADABLE | {repaired: "x"}]
