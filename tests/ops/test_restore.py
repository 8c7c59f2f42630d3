"""What `make restore` does on moto; tests/reliability/test_repair.py has histories of it."""

from decimal import Decimal
from typing import Any

import boto3
import pytest

from ops.restore import _write, restore
from ops.stage import DeploymentError
from tests.support.aws import Account
from tools import ROOT

MIA: dict[str, Any] = {"pk": "pet", "id": 1, "name": "Mia"}
MAX = MIA | {"name": "Max", "revoked": 1}
LEO = MIA | {"id": 2, "name": "Leo"}
OLD: dict[str, Any] = {"pk": "idempotency#1", "id": 0, "createdId": 1, "expires": 1}
ZOE = MIA | {"id": 3, "createdAt": 1}
LATER = ZOE | {"name": "Zed", "createdAt": 2}
COUNTER: dict[str, Any] = {"pk": "counter", "id": 0, "value": 2}
# Written by hand.
ODD = [
    MIA | {"id": Decimal("20.5")},
    MIA | {"id": Decimal("1E+40")},
    {"pk": "odd", "id": 0, "value": None},
]


@pytest.fixture
def table(live: Account) -> Any:
    """Copy a stage's table; while it is read, a repair from an earlier moment begins."""
    table = boto3.resource("dynamodb", "eu-central-1").Table("animals")
    for item in (MIA, LEO, ZOE, OLD, COUNTER):
        table.put_item(Item=item)
    live.client("dynamodb").restore_table_to_point_in_time(
        SourceTableName="animals", TargetTableName="copy", UseLatestRestorableTime=True
    )
    live.client("dynamodb").meta.events.register(
        "before-parameter-build.dynamodb.Scan",
        lambda **_: table.put_item(Item={"pk": "repair", "id": 0, "1": 9999999999}),
    )
    return table


def test_damage_is_put_back_and_what_is_odd_is_named_and_left(
    live: Account, table: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    longer = OLD | {"expires": 9999999999}
    for item in (MAX, LATER, longer, COUNTER | {"value": Decimal("3.5")}, *ODD):
        table.put_item(Item=item)
    table.delete_item(Key={"pk": "pet", "id": 2})

    restore(live.stage, "copy", again=True)
    assert "1E+40" in capsys.readouterr().out
    assert MAX in table.scan()["Items"]

    with pytest.raises(DeploymentError, match="1 items are left"):
        restore(live.stage, "copy", apply=True, again=True)
    for item in (MIA, LEO, LATER, OLD, COUNTER | {"value": 21}, *ODD):
        assert item in table.scan()["Items"]
    repairs = table.get_item(Key={"pk": "repair", "id": 0})["Item"]
    assert len({*repairs} - {"pk", "id", "1"}) == 1
    table.delete_item(Key={"pk": "pet", "id": 3})
    restore(live.stage, "copy", apply=True, again=True)
    assert ZOE in table.scan()["Items"]
    assert live.client("dynamodb").list_tables()["TableNames"] == ["keys", "animals"]


def test_what_was_revoked_since_the_comparison_is_left(table: Any) -> None:
    table.put_item(Item=MAX)
    assert not _write(table.meta.client, "animals", MIA | {"name": "Max"}, MIA)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("copy", "message"),
    [
        ("animals", "is no copy"),
        ("copy", "--again"),
        ("gone", "somebody else finished"),
    ],
)
def test_what_may_have_the_damage_is_refused(
    live: Account, copy: str, message: str
) -> None:
    with pytest.raises(DeploymentError, match=message):
        restore(live.stage, copy)


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
