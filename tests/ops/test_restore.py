"""Plans of repairs, and what comes of applying them; tests/reliability/test_repair.py has more."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from ops.restore import apply, plan
from ops.stage import DeploymentError
from tests.support.aws import Account
from tests.support.aws_cli import parse
from tools import ROOT

MOMENT = 1_000_000
MIA: dict[str, Any] = {"pk": "pet", "id": 1, "name": "Mia", "createdAt": 999_990}
RECORD = {"pk": "idempotency#a", "id": 0, "createdId": 1, "expires": 1_086_390}
ODD = {"pk": "odd", "id": Decimal("20.5"), "B": [None, b"\xff"]}
COUNTER: dict[str, Any] = {"pk": "counter", "id": 0, "value": 5}
KEY = {"hash": "0f", "label": "bob"}
# Created after the copy, under an id and a key that were given again.
ZOE = MIA | {"name": "Zoe", "createdAt": 1_000_000}
RECORD_OF_ZOE = RECORD | {"expires": 1_086_400}
PLAN, OTHERS = Path("copy.jsonl"), Path("copy-others.jsonl")


class Table:
    """A table of a stage, and a copy of it as it was at MOMENT; it is ten seconds later."""

    def __init__(self, account: Account, name: str, *items: Any) -> None:
        self.stage, self.client = account.stage, account.client("dynamodb")
        self._table = boto3.resource("dynamodb", "eu-central-1").Table(name)
        self.put(*items)
        self.client.restore_table_to_point_in_time(
            SourceTableName=name, TargetTableName="copy"
        )
        summary = {
            "SourceTableArn": f"table/{name}",
            "RestoreDateTime": datetime.fromtimestamp(MOMENT, UTC),
        }
        account.answers["DescribeTable"] = {"Table": {"RestoreSummary": summary}}

    def put(self, *items: Any) -> None:
        for item in items:
            self._table.put_item(Item=item)

    def delete(self, item: Any) -> None:
        self._table.delete_item(Key={"pk": item["pk"], "id": item["id"]})

    def items(self) -> Any:
        return self._table.scan()["Items"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(time=lambda: MOMENT + 10, sleep=lambda _: None)
    monkeypatch.setattr("ops.restore.time", clock)
    return clock


@pytest.fixture
def animals(live: Account, clock: object) -> Table:  # noqa: ARG001
    return Table(live, "animals", MIA, RECORD, ODD, COUNTER)


@pytest.fixture
def keys(live: Account, clock: object) -> Table:  # noqa: ARG001
    return Table(live, "keys", KEY)


def test_plan_has_a_line_for_each_item(animals: Table) -> None:
    animals.delete(RECORD)

    plan(animals.stage, "copy")

    assert json.loads(PLAN.read_text()) == {
        "found": {},
        "was": {
            "pk": {"S": "idempotency#a"},
            "id": {"N": "0"},
            "createdId": {"N": "1"},
            "expires": {"N": "1086390"},
        },
        "table": "animals",
        "copy": "copy",
    }
    assert PLAN.stat().st_mode & 0o777 == 0o600


def test_changed_and_missing_items_are_put_back(animals: Table) -> None:
    animals.put(MIA | {"createdAt": "today", "hash": [b"\xfe"], "revoked": 1})
    animals.delete(RECORD)
    animals.delete(ODD)

    plan(animals.stage, "copy")
    apply(animals.stage, PLAN)
    apply(animals.stage, PLAN)

    for item in (MIA, RECORD, ODD):
        assert item in animals.items()


@pytest.mark.parametrize("later", [{"name": "Tim"}, {"more": 1}])
def test_item_that_changed_after_the_plan_is_left(animals: Table, later: Any) -> None:
    damaged = MIA | {"name": "Max", "more": 0}
    animals.put(damaged)
    plan(animals.stage, "copy")
    animals.put(damaged | later)

    with pytest.raises(DeploymentError):
        apply(animals.stage, PLAN)

    assert damaged | later in animals.items()


def test_items_of_other_clients_have_a_plan_of_their_own(animals: Table) -> None:
    animals.put(ZOE, RECORD_OF_ZOE)
    plan(animals.stage, "copy")

    apply(animals.stage, PLAN)
    assert ZOE in animals.items()
    assert RECORD_OF_ZOE in animals.items()

    apply(animals.stage, OTHERS)
    assert MIA in animals.items()
    assert RECORD in animals.items()


def test_record_is_left_without_its_animal(animals: Table) -> None:
    animals.delete(RECORD)
    animals.put(ZOE)
    plan(animals.stage, "copy")

    with pytest.raises(DeploymentError):
        apply(animals.stage, PLAN)

    assert RECORD not in animals.items()


def test_expired_record_needs_no_repair(animals: Table, clock: SimpleNamespace) -> None:
    animals.delete(RECORD)
    clock.time = lambda: 1_086_390

    plan(animals.stage, "copy")

    assert PLAN.read_text() == ""


def test_revoked_key_stays_revoked(keys: Table) -> None:
    damaged = KEY | {"expires": 9, "pk": 1}
    keys.put(damaged)
    plan(keys.stage, "copy")
    keys.put(damaged | {"revoked": 1})

    with pytest.raises(DeploymentError):
        apply(keys.stage, PLAN)
    assert damaged | {"revoked": 1} in keys.items()

    plan(keys.stage, "copy")
    assert PLAN.read_text() == ""


@pytest.mark.parametrize(
    ("damaged", "raised"),
    [
        (COUNTER | {"value": 4}, 10_005),  # it may have given 10,000 ids since
        (COUNTER | {"value": 10**12}, 10_005),
        (COUNTER | {"value": "five"}, 10_005),
        (MIA | {"id": 7}, 7),
    ],
)
def test_printed_command_raises_the_counter(
    animals: Table, damaged: Any, raised: int
) -> None:
    animals.put(damaged)
    with pytest.raises(DeploymentError) as error:
        plan(animals.stage, "copy")

    animals.client.update_item(**parse(str(error.value)))

    assert COUNTER | {"value": raised} in animals.items()
    plan(animals.stage, "copy")


def test_printed_command_does_not_lower_the_counter(animals: Table) -> None:
    animals.delete(COUNTER)
    with pytest.raises(DeploymentError) as error:
        plan(animals.stage, "copy")
    animals.put(COUNTER | {"value": 20_000})

    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        animals.client.update_item(**parse(str(error.value)))


def test_table_that_is_no_copy_is_refused(animals: Table, live: Account) -> None:
    live.answers["DescribeTable"] = {"Table": {}}

    with pytest.raises(DeploymentError, match="no copy"):
        plan(animals.stage, "animals")


def test_plan_of_another_stage_is_refused(animals: Table) -> None:
    PLAN.write_text('{"found": {}, "was": {}, "table": "others", "copy": "copy"}')

    with pytest.raises(DeploymentError, match="others is no table"):
        apply(animals.stage, PLAN)


def test_plan_that_was_cut_off_is_refused_before_anything_is_written(
    animals: Table,
) -> None:
    animals.delete(MIA)
    animals.delete(ODD)
    plan(animals.stage, "copy")
    PLAN.write_text(PLAN.read_text()[:-20])

    with pytest.raises(DeploymentError, match="line 2: is no line of a plan"):
        apply(animals.stage, PLAN)

    assert MIA not in animals.items()


def test_edited_plan_may_have_blank_lines(animals: Table) -> None:
    animals.delete(MIA)
    plan(animals.stage, "copy")
    PLAN.write_text("\n" + PLAN.read_text() + "\n")

    apply(animals.stage, PLAN)

    assert MIA in animals.items()


def test_throttled_keys_are_read_again_after_a_pause(
    keys: Table, live: Account, clock: SimpleNamespace
) -> None:
    live.answers["BatchGetItem"] = {
        "Responses": {"keys": []},
        "UnprocessedKeys": {"keys": {"Keys": [{"hash": {"S": "0f"}}]}},
        "ConsumedCapacity": [{"CapacityUnits": 3000}],
    }
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        live.answers.pop("BatchGetItem", None)

    clock.sleep = sleep

    plan(keys.stage, "copy")

    assert '"0f"' not in PLAN.read_text()
    assert pauses[0] == 2  # half of a partition's 3,000 units a second


@pytest.mark.parametrize(
    "option",
    [
        "Enabled=true,AttributeName=expires",
        "--deletion-protection-enabled",
        "PointInTimeRecoveryEnabled=true",
        "Key=project,Value=animal-store ",
    ],
)
def test_the_runbook_sets_again_what_a_revived_table_lacks(option: str) -> None:
    assert option in (ROOT / "docs/runbook.md").read_text()
