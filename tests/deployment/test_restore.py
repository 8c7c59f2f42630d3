"""What `make restore` does on moto; tests/reliability/test_repair.py has histories of it."""

from collections.abc import Iterator
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from tests.support.handlers import ANIMALS, TEMPLATE
from tests.support.stack import load
from tools import ROOT
from tools.deployment.restore import _write, restore
from tools.deployment.stage import DeploymentError

MIA: dict[str, Any] = {"pk": "pet", "id": 1, "name": "Mia"}
MAX = MIA | {"name": "Max"}
LEO = MIA | {"id": 2, "name": "Leo"}
COUNTER: dict[str, Any] = {"pk": "counter", "id": 0, "value": 2}
# Written by hand.
ODD: list[Any] = [
    MIA | {"id": Decimal("20.5")},
    MIA | {"id": Decimal("1E+40")},
    {"pk": "odd", "id": 0, "value": None},
]


@pytest.fixture
def stage() -> Iterator[Any]:
    """Give a stage whose tables are read in pages of one item."""
    with mock_aws():
        client: Any = boto3.client("dynamodb")
        client.create_table(**TEMPLATE.tables["AnimalsTable"].request)
        client.meta.events.register(
            "provide-client-params.dynamodb.Scan",
            lambda params, **_: params | {"Limit": 1},
        )
        yield SimpleNamespace(
            stack="animal-store-production",
            deployed=lambda: {"AnimalsTableName": ANIMALS},
            client=lambda _: client,
            table=boto3.resource("dynamodb").Table(ANIMALS),
        )


def write(stage: Any, *items: Any) -> None:
    for item in items:
        stage.table.put_item(Item=item)


def copy(stage: Any) -> None:
    stage.client("dynamodb").restore_table_to_point_in_time(
        SourceTableName=ANIMALS, TargetTableName="copy", UseLatestRestorableTime=True
    )


def test_damage_is_put_back_and_what_is_odd_is_named_and_left(
    stage: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    write(stage, MIA, LEO, COUNTER)
    copy(stage)
    write(stage, MAX, COUNTER | {"value": Decimal("3.5")}, *ODD)
    stage.table.delete_item(Key={"pk": "pet", "id": 2})

    restore(stage, "copy")
    listed = capsys.readouterr().out
    assert "20.5" in listed
    assert "1E+40" in listed
    assert MAX in stage.table.scan()["Items"]

    restore(stage, "copy", apply=True)
    for item in (MIA, LEO, COUNTER | {"value": 21}, *ODD):
        assert item in stage.table.scan()["Items"]


def test_what_was_revoked_since_the_comparison_is_left(stage: Any) -> None:
    write(stage, MAX | {"revoked": 1})
    assert not _write(stage.table.meta.client, ANIMALS, MAX, MIA)


def test_the_slower_of_two_learns_that_somebody_else_finished(stage: Any) -> None:
    copy(stage)
    restore(stage, "copy", apply=True)
    with pytest.raises(DeploymentError, match="somebody else finished"):
        restore(stage, "copy", apply=True)


def test_what_is_no_copy_is_not_trusted(stage: Any) -> None:
    with pytest.raises(DeploymentError, match="is no copy"):
        restore(stage, ANIMALS, apply=True)


def test_a_moment_that_an_earlier_repair_makes_doubtful_is_said_again(
    stage: Any,
) -> None:
    copy(stage)
    write(stage, {"pk": "repair", "id": 0, "9999999999": 1})
    with pytest.raises(DeploymentError, match="--again"):
        restore(stage, "copy")
    restore(stage, "copy", apply=True, again=True)
    assert "9999999999" in str(stage.table.scan())


def test_the_runbook_sets_again_what_a_revived_table_lacks() -> None:
    runbook = (ROOT / "docs/runbook.md").read_text()
    table = load("template.yaml")["Resources"]["AnimalsTable"]["Properties"]
    name = table["TimeToLiveSpecification"]["AttributeName"]
    assert f"Enabled=true,AttributeName={name}" in runbook
    assert "--deletion-protection-enabled" in runbook
