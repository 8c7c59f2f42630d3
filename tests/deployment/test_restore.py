"""What `make restore` does on moto; tests/reliability/test_repair.py has histories of it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner

from tests.support.handlers import ANIMALS, TEMPLATE
from tests.support.stack import load
from tools import ROOT
from tools.cli import app
from tools.deployment.restore import _write, restore
from tools.deployment.stage import DeploymentError

AT, LATER = datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
MIA: dict[str, Any] = {"pk": "pet", "id": 1, "name": "Mia"}
MAX = MIA | {"name": "Max"}
COUNTER: dict[str, Any] = {"pk": "counter", "id": 0, "value": 1}
EXPIRED = {"pk": "idempotency#", "id": 0, "expires": 1}
# Written by hand.
ODD: list[Any] = [
    MIA | {"id": Decimal("20.5")},
    MIA | {"id": Decimal("1E+40")},
    {"pk": "odd", "id": 0, "value": None},
]


@pytest.fixture
def stage() -> Iterator[Any]:
    """Give a stage whose copies are of the moment that `made` says."""
    with mock_aws():
        client: Any = boto3.client("dynamodb")
        table: Any = boto3.resource("dynamodb").Table(ANIMALS)
        client.create_table(**TEMPLATE.tables["AnimalsTable"].request)
        made = {"SourceTableArn": f"/{ANIMALS}", "RestoreDateTime": AT}
        client.meta.events.register(
            "after-call.dynamodb.DescribeTable",
            lambda parsed, **_: parsed["Table"].update(RestoreSummary=made),
        )
        yield SimpleNamespace(
            stack="animal-store-production",
            announce=lambda: None,
            deployed=lambda: {"AnimalsTableName": ANIMALS},
            client=lambda _: client,
            sleep=lambda _: None,
            made=made,
            table=table,
            put=lambda item: table.put_item(Item=item),
            items=lambda: table.scan()["Items"],
        )


def test_damage_is_put_back_and_what_is_odd_is_named_and_left(
    stage: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for item in (MIA, COUNTER, EXPIRED):
        stage.put(item)
    restore(stage, AT)
    for item in (MAX, EXPIRED | {"expires": 2}, *ODD):
        stage.put(item)

    restore(stage, AT)
    listed = capsys.readouterr().out
    assert MAX in stage.items()
    restore(stage, AT, apply=True)

    for item in (MIA, EXPIRED | {"expires": 2}, COUNTER | {"value": 21}, *ODD):
        assert item in stage.items()
    assert "20.5" in listed
    assert "1E+40" in listed


def test_what_was_revoked_since_the_comparison_is_left(stage: Any) -> None:
    stage.put(MAX | {"revoked": 1})
    assert not _write(stage.table.meta.client, ANIMALS, MAX, MIA)
    assert stage.items() == [MAX | {"revoked": 1}]


def test_a_copy_of_another_moment_is_not_trusted(stage: Any) -> None:
    with pytest.raises(DeploymentError, match="of no use"):
        restore(stage, LATER, apply=True)


def test_a_moment_that_an_earlier_repair_makes_doubtful_is_said_again(
    stage: Any,
) -> None:
    restore(stage, AT, apply=True)
    with pytest.raises(DeploymentError, match="--again"):
        restore(stage, LATER)
    stage.made["RestoreDateTime"] = LATER
    restore(stage, LATER, again=LATER)


def test_a_time_without_its_zone_is_refused() -> None:
    command = ["restore", "production", "--at", "2027-01-31T02:30:00"]
    assert CliRunner().invoke(app, command).exit_code == 2


def test_the_runbook_sets_again_what_a_revived_table_lacks() -> None:
    runbook = (ROOT / "docs/runbook.md").read_text()
    table = load("template.yaml")["Resources"]["AnimalsTable"]["Properties"]
    expiry = table["TimeToLiveSpecification"]["AttributeName"]
    assert table["DeletionProtectionEnabled"]
    assert "--deletion-protection-enabled" in runbook
    assert f"Enabled=true,AttributeName={expiry}" in runbook
    assert "Key=project,Value=animal-store " in runbook
