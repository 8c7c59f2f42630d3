"""Plans of repairs, and what comes of applying them; tests/reliability/test_repair.py has more."""

from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError

from ops.restore import apply, plan
from ops.stage import DeploymentError
from tests.support.aws import Account
from tests.support.aws_cli import parse

MOMENT = 1_000_000  # of the copy; it is ten seconds later
COUNTER: dict[str, Any] = {"pk": "counter", "id": 0, "value": 5}
RECORD = {"pk": "idempotency#a", "id": 0, "createdId": 1, "expires": 1_086_405}
# By a clock of the service that is fast.
MIA: dict[str, Any] = {"pk": "pet", "id": 1, "name": "Mia", "createdAt": 1_000_005}
DAMAGED = MIA | {"hash": [b"\xfe"], "revoked": 1}
# Created after the copy, under an id and a key that were given again.
ZOE = MIA | {"name": "Zoe", "createdAt": 1_000_000}
RECORD_OF_ZOE = RECORD | {"expires": 1_086_400}
PLAN, OTHERS = Path("copy/plan.jsonl"), Path("copy/others.jsonl")


class Table:
    """A table of a stage, with a copy of the first items."""

    def __init__(self, account: Account, name: str, *items: Any) -> None:
        self.stage, self.client = account.stage, account.client("dynamodb")
        self._table = boto3.resource("dynamodb", "eu-central-1").Table(name)
        self._key = [each["AttributeName"] for each in self._table.key_schema]
        self.fill(*items)
        self.client.restore_table_to_point_in_time(
            SourceTableName=name, TargetTableName="copy"
        )
        moment = datetime.fromtimestamp(MOMENT, UTC)
        source = {"SourceTableArn": f"table/{name}", "RestoreDateTime": moment}
        account.answers["DescribeTable"] = {"Table": {"RestoreSummary": source}}

    def fill(self, *items: Any) -> None:
        """Put these items in the place of all others."""
        for item in self.items():
            self._table.delete_item(Key={name: item[name] for name in self._key})
        for item in items:
            self._table.put_item(Item=item)

    def items(self) -> Any:
        # By the id first, because a starter's animals have another partition key.
        return sorted(self._table.scan()["Items"], key=itemgetter(*self._key[::-1]))


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Mock:
    clock = Mock(**{"time.return_value": MOMENT + 10})
    monkeypatch.setattr("ops.restore.time", clock)
    return clock


@pytest.fixture
def animals(live: Account) -> Table:
    return Table(live, "animals", COUNTER, RECORD, MIA)


def test_plan_has_a_line_for_each_item(
    animals: Table, clock: Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    animals.fill(COUNTER | {"value": 6}, RECORD)

    plan(animals.stage, "copy")

    assert PLAN.read_text() == (
        '{"table": "animals", "current": {}, "copied": {"pk": {"S": "pet"}, '
        '"id": {"N": "1"}, "name": {"S": "Mia"}, "createdAt": {"N": "1000005"}}}\n'
    )
    assert PLAN.stat().st_mode & 0o777 == 0o600
    printed = capsys.readouterr().out
    assert "The counter is 6, in the copy 5; the highest id is 1.\n" in printed
    assert f"missing: {PLAN.read_text()}" in printed
    assert printed.endswith("copy: 1 items differ: {'missing': 1}\n")
    # Of each of ten readers: half of the 3,000 reads a second that a partition serves.
    clock.sleep.assert_called_with(10 / 1500)


def test_missing_and_changed_items_are_put_back(animals: Table) -> None:
    animals.fill(COUNTER, DAMAGED)
    plan(animals.stage, "copy")

    apply(animals.stage, PLAN)
    apply(animals.stage, PLAN)

    assert animals.items() == [COUNTER, RECORD, MIA]


@pytest.mark.parametrize(
    ("planned", "later"),
    [
        ([COUNTER, RECORD, DAMAGED], [COUNTER, RECORD, DAMAGED | {"name": "Tim"}]),
        ([COUNTER, RECORD, DAMAGED], [COUNTER, RECORD, DAMAGED | {"hash": []}]),
        # The animal of the record that is missing is another client's.
        ([COUNTER, ZOE], [COUNTER, ZOE]),
    ],
)
def test_item_that_changed_since_the_plan_is_left(
    animals: Table, planned: Any, later: Any
) -> None:
    animals.fill(*planned)
    plan(animals.stage, "copy")
    animals.fill(*later)

    with pytest.raises(DeploymentError, match="1 items were skipped"):
        apply(animals.stage, PLAN)

    assert animals.items() == later


def test_items_created_by_other_clients_go_into_a_separate_plan(animals: Table) -> None:
    animals.fill(COUNTER, RECORD_OF_ZOE, ZOE)
    plan(animals.stage, "copy")

    apply(animals.stage, PLAN)
    assert animals.items() == [COUNTER, RECORD_OF_ZOE, ZOE]

    apply(animals.stage, OTHERS)
    assert animals.items() == [COUNTER, RECORD, MIA]


def test_expired_idempotency_record_is_not_planned(animals: Table, clock: Mock) -> None:
    animals.fill(COUNTER, MIA)
    clock.time.return_value = 1_086_405

    plan(animals.stage, "copy")

    assert PLAN.read_text() == ""


def test_revocation_before_or_after_the_plan_is_not_undone(live: Account) -> None:
    keys = Table(live, "keys", {"hash": "a"}, {"hash": "b"})
    keys.fill({"hash": "a", "revoked": 1}, {"hash": "b", "pk": 1})
    plan(keys.stage, "copy")
    revoked = [{"hash": "a", "revoked": 1}, {"hash": "b", "pk": 1, "revoked": 1}]
    keys.fill(*revoked)

    with pytest.raises(DeploymentError, match="1 items were skipped"):
        apply(keys.stage, PLAN)

    assert keys.items() == revoked


@pytest.mark.parametrize(
    ("planned", "later", "raised"),
    [
        (Decimal("4.5"), 5, 11_005),  # 1,000 ids for each second since the copy
        ("five", "five", 11_005),
        (10**12, 10**12 + 1, 11_005),
        (0, 20_000, 20_000),
    ],
)
def test_printed_command_raises_the_counter_and_never_lowers_it(
    animals: Table, planned: Any, later: Any, raised: int
) -> None:
    animals.fill(COUNTER | {"value": planned})
    with pytest.raises(DeploymentError) as error:
        plan(animals.stage, "copy")
    animals.fill(COUNTER | {"value": later})

    with suppress(ClientError):
        animals.client.update_item(**parse(str(error.value)))

    assert animals.items() == [COUNTER | {"value": raised}]


def test_counter_below_the_highest_id_is_raised_to_it(animals: Table) -> None:
    damage = MIA | {"id": 10**12}
    animals.fill(COUNTER, MIA | {"id": 17}, damage)

    with pytest.raises(DeploymentError, match=r'":new": \{"N": "17"\}'):
        plan(animals.stage, "copy")


def test_plan_that_exists_is_not_replaced(animals: Table) -> None:
    plan(animals.stage, "copy")

    with pytest.raises(FileExistsError, match="copy"):
        plan(animals.stage, "copy")


def test_table_that_is_no_copy_is_refused(live: Account) -> None:
    live.answers["DescribeTable"] = {"Table": {}}

    with pytest.raises(DeploymentError, match="animals is not a copy of a table"):
        plan(live.stage, "animals")


@pytest.mark.parametrize(
    "line", ['{"table": "others", "current": {}, "copied": {}}', '{"table": "anim']
)
def test_damaged_line_is_refused_before_anything_is_written(
    animals: Table, line: str
) -> None:
    animals.fill(COUNTER, RECORD)
    plan(animals.stage, "copy")
    PLAN.write_text(PLAN.read_text() + line)

    with pytest.raises(DeploymentError):
        apply(animals.stage, PLAN)

    assert animals.items() == [COUNTER, RECORD]
