"""Plans of repairs, and what they restore."""

import json
import shlex
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest
from botocore.exceptions import ClientError

from ops.restore import apply, plan
from ops.stage import Stage, StageError
from tests.support.aws import SESSION, Account

COPIED_AT = 1_000_000
COUNTER: dict[str, Any] = {"pk": "counter", "id": 0, "value": 5}
RECORD_OF_MIA = {"pk": "idempotency#a", "id": 0, "createdId": 1, "expires": 1_086_406}
# The clock of the function that created Mia, and a second later her record, was 5 s fast.
MIA: dict[str, Any] = {"pk": "pet", "id": 1, "name": "Mia", "createdAt": 1_000_005}
DAMAGED_MIA = MIA | {"createdAt": 1, "hash": [b"\xfe"], "revoked": 1}
# Another client's items: after the copy, the id and the key were assigned again.
ZOE_WITH_MIAS_ID = MIA | {"name": "Zoe", "createdAt": 1_000_000}
RECORD_OF_ZOE_WITH_MIAS_KEY = RECORD_OF_MIA | {"expires": 1_086_400}
PLAN, OTHERS_PLAN = Path("copy/plan.jsonl"), Path("copy/others.jsonl")


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
    # A starter's animals have another partition key, so sort the items by their ids.
    return sorted(items, key=lambda item: item.get("id", 0))


def make_copy(account: Account, table: str, *items: dict[str, Any]) -> None:
    """Make a copy of a table that has these items."""
    account.client("dynamodb").restore_table_to_point_in_time(
        SourceTableName=table, TargetTableName="copy"
    )
    moment = datetime.fromtimestamp(COPIED_AT, UTC)
    summary = {"SourceTableArn": f"table/{table}", "RestoreDateTime": moment}
    account.answers["DescribeTable"] = {"Table": {"RestoreSummary": summary}}
    put("copy", *items)


@pytest.fixture
def stage(deployed: Account) -> Stage:
    """A stage with an empty table of animals, and a copy of the table as it was."""
    make_copy(deployed, "animals", COUNTER, RECORD_OF_MIA, MIA)
    return deployed.stage


def test_plan_lists_and_prints_each_item_that_is_missing_from_the_table(
    stage: Stage, clock: Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    put("animals", COUNTER | {"value": 6}, RECORD_OF_MIA)

    plan(stage, "copy")

    assert PLAN.read_text() == (
        '{"table": "animals", "current": {}, "copied": {"pk": {"S": "pet"}, '
        '"id": {"N": "1"}, "name": {"S": "Mia"}, "createdAt": {"N": "1000005"}}}\n'
    )
    assert PLAN.stat().st_mode & 0o777 == 0o600
    printed = capsys.readouterr().out
    assert "The counter is 6, in the copy 5; the highest id is 1.\n" in printed
    assert f"missing: {PLAN.read_text()}" in printed
    assert printed.endswith("copy: 1 items differ: {'missing': 1}\n")
    # Ten readers together make half of the 3,000 reads a second that a partition serves.
    clock.sleep.assert_called_with(10 / 1500)


@pytest.mark.parametrize("mia_created_at", [1_000_005, 1_000_006])
def test_changed_animal_and_its_missing_idempotency_record_are_restored(
    stage: Stage, capsys: pytest.CaptureFixture[str], mia_created_at: int
) -> None:
    mia = MIA | {"createdAt": mia_created_at}
    put("copy", mia)
    put("animals", COUNTER, DAMAGED_MIA)
    plan(stage, "copy")

    apply(stage, PLAN)
    apply(stage, PLAN)

    assert items("animals") == [COUNTER, RECORD_OF_MIA, mia]
    assert "aws dynamodb delete-table --table-name copy\n" in capsys.readouterr().out


def test_items_that_changed_after_the_plan_was_made_are_skipped(stage: Stage) -> None:
    put("animals", COUNTER, RECORD_OF_MIA | {"name": "damaged"})
    plan(stage, "copy")
    later = [COUNTER, RECORD_OF_MIA | {"name": "changed"}, MIA | {"name": "Zoe"}]
    put("animals", *later)

    with pytest.raises(StageError, match="2 items were skipped"):
        apply(stage, PLAN)

    assert items("animals") == later


@pytest.mark.parametrize("zoe_created_at", [1_000_004, 1_000_007])
def test_idempotency_record_is_skipped_if_its_id_now_belongs_to_another_animal(
    stage: Stage, zoe_created_at: int
) -> None:
    zoe = ZOE_WITH_MIAS_ID | {"createdAt": zoe_created_at}
    put("animals", COUNTER, zoe)
    plan(stage, "copy")

    with pytest.raises(StageError, match="1 items were skipped"):
        apply(stage, PLAN)

    assert items("animals") == [COUNTER, zoe]


def test_item_with_400_damaged_attributes_is_restored_within_dynamodbs_limit(
    stage: Stage,
) -> None:
    damaged = MIA | {f"attribute {number}": number for number in range(400)}
    put("animals", COUNTER, RECORD_OF_MIA, damaged)
    plan(stage, "copy")
    client = stage.client("dynamodb")

    with patch.object(client, "put_item", wraps=client.put_item) as put_item:
        apply(stage, PLAN)

    assert items("animals") == [COUNTER, RECORD_OF_MIA, MIA]
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
    assert len(put_item.call_args.kwargs["ConditionExpression"]) <= 4096


def test_repairs_that_overwrite_another_clients_items_go_into_a_separate_plan(
    stage: Stage,
) -> None:
    put("animals", COUNTER, RECORD_OF_ZOE_WITH_MIAS_KEY, ZOE_WITH_MIAS_ID)
    plan(stage, "copy")

    apply(stage, PLAN)
    assert items("animals") == [COUNTER, RECORD_OF_ZOE_WITH_MIAS_KEY, ZOE_WITH_MIAS_ID]

    apply(stage, OTHERS_PLAN)
    assert items("animals") == [COUNTER, RECORD_OF_MIA, MIA]


def test_plan_leaves_out_expired_idempotency_records(stage: Stage, clock: Mock) -> None:
    put("animals", COUNTER, MIA)
    clock.time.return_value = 1_086_406

    plan(stage, "copy")

    assert PLAN.read_text() == ""


def test_repair_does_not_undo_the_revocation_of_an_api_key(
    deployed: Account,
) -> None:
    make_copy(deployed, "keys", {"hash": "a"}, {"hash": "b"})
    revoked_a = {"hash": "a", "revoked": 1}
    damaged_b = {"hash": "b", "pk": 1}
    revoked_b = damaged_b | {"revoked": 1}
    put("keys", revoked_a, damaged_b)
    plan(deployed.stage, "copy")
    put("keys", revoked_b)

    with pytest.raises(StageError, match="1 items were skipped"):
        apply(deployed.stage, PLAN)

    _key_of_the_check, *keys = items("keys")
    assert keys == [revoked_a, revoked_b]


@pytest.mark.parametrize(
    ("value_in_copy", "value_before_plan", "value_after_plan", "expected"),
    [
        (5, 5, 5, 17),  # below the highest id
        # Damaged, or below the copy's: skip 1,000 ids for each of the 11 s since the copy.
        (5, Decimal("4.5"), 5, 11_017),
        (5, "five", "five", 11_017),
        (5, 10**12, 10**12 + 1, 11_017),
        (30, 5, 5, 11_030),
        (5, 0, 20_000, 20_000),  # the service has raised it meanwhile
    ],
)
def test_printed_aws_command_raises_the_id_counter_and_never_lowers_it(
    stage: Stage,
    value_in_copy: int,
    value_before_plan: Any,
    value_after_plan: Any,
    expected: int,
) -> None:
    put("copy", COUNTER | {"value": value_in_copy})
    damaged_id = 10**12
    put("animals", MIA, MIA | {"id": 17}, MIA | {"id": damaged_id})
    put("animals", COUNTER | {"value": value_before_plan})
    with pytest.raises(StageError) as error:
        plan(stage, "copy")
    put("animals", COUNTER | {"value": value_after_plan})

    *command, parameters = shlex.split(str(error.value).partition("\naws ")[2])
    assert command == ["dynamodb", "update-item", "--cli-input-json"]
    with suppress(ClientError):
        stage.client("dynamodb").update_item(**json.loads(parameters))

    assert COUNTER | {"value": expected} in items("animals")
    plan(stage, "copy")


def test_existing_plan_is_not_overwritten(stage: Stage) -> None:
    put("animals", COUNTER)
    plan(stage, "copy")

    with pytest.raises(StageError, match="first: rm -r copy"):
        plan(stage, "copy")


def test_plan_from_a_table_that_is_not_a_copy_is_refused(deployed: Account) -> None:
    with pytest.raises(StageError, match="animals is not a copy of a table"):
        plan(deployed.stage, "animals")


@pytest.mark.parametrize(
    "line", ['{"table": "others", "current": {}, "copied": {}}', '{"table": "anim']
)
def test_plan_with_an_invalid_line_is_refused_before_anything_is_written(
    stage: Stage, line: str
) -> None:
    put("animals", COUNTER)
    plan(stage, "copy")
    with PLAN.open("a") as file:
        file.write(line)

    with pytest.raises(StageError):
        apply(stage, PLAN)

    assert items("animals") == [COUNTER]
