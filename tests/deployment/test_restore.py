"""What `make restore` does on moto; tests/reliability/test_repair.py has histories of it."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
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
from tools.deployment.restore import restore
from tools.deployment.stage import DeploymentError

AT, LATER = datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
MIA = {"pk": {"S": "pet"}, "id": {"N": "1"}, "name": {"S": "Mia"}}
CHANGED = MIA | {"name": {"S": "Max"}}
# Written by hand, after the moment.
ODD: list[Any] = [
    {"pk": {"S": "pet"}, "id": {"N": "20.5"}},
    {"pk": {"S": "pet"}, "id": {"N": "1E+40"}},
    {"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"NULL": True}},
]


@pytest.fixture
def stage() -> Iterator[Any]:
    """Give a stage with an animal, where `said` corrects what moto says of a table."""
    said: dict[str, Any] = {
        "RestoreSummary": {"SourceTableArn": f"/{ANIMALS}", "RestoreDateTime": AT}
    }
    with mock_aws():
        client: Any = boto3.client("dynamodb")
        client.create_table(**TEMPLATE.tables["AnimalsTable"].request)
        client.put_item(TableName=ANIMALS, Item=MIA)
        client.meta.events.register(
            "after-call.dynamodb.DescribeTable",
            lambda parsed, **_: parsed["Table"].update(said),
        )
        yield SimpleNamespace(
            stack="animal-store-production",
            announce=lambda: None,
            deployed=lambda: {"AnimalsTableName": ANIMALS},
            client=lambda _: client,
            sleep=lambda _: None,
            said=said,
            items=lambda: client.scan(TableName=ANIMALS)["Items"],
        )


def test_damage_is_put_back_and_what_is_odd_is_named_and_left(
    stage: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    restore(stage, AT)
    for item in (CHANGED, *ODD):
        stage.client("dynamodb").put_item(TableName=ANIMALS, Item=item)

    restore(stage, AT)
    listed = capsys.readouterr().out
    assert CHANGED in stage.items()
    restore(stage, AT, apply=True)

    assert MIA in stage.items()
    for item in ODD:
        assert str(item["id"]["N"]) in listed
        assert item in stage.items()


@pytest.mark.parametrize("said", [{"TableStatus": "ARCHIVED"}, {"RestoreSummary": {}}])
def test_a_copy_is_not_trusted_by_its_name(stage: Any, said: Any) -> None:
    stage.said.update(said)
    with pytest.raises(DeploymentError, match="of no use"):
        restore(stage, AT, apply=True)


def test_a_moment_that_an_earlier_repair_makes_doubtful_is_said_again(
    stage: Any,
) -> None:
    restore(stage, AT, apply=True)
    with pytest.raises(DeploymentError, match="--again"):
        restore(stage, LATER)
    stage.said["RestoreSummary"]["RestoreDateTime"] = LATER
    restore(stage, LATER, again=LATER)


def test_a_time_without_its_zone_is_refused() -> None:
    command = ["restore", "production", "--at", "2027-01-31T02:30:00"]
    assert CliRunner().invoke(app, command).exit_code == 2


def test_the_runbook_sets_again_what_a_revived_table_lacks() -> None:
    runbook = (ROOT / "docs/runbook.md").read_text()
    table = load("template.yaml")["Resources"]["AnimalsTable"]["Properties"]
    expiry = table["TimeToLiveSpecification"]["AttributeName"]
    tags = re.search('tags = "(.*) stage=', (ROOT / "samconfig.toml").read_text())
    assert tags
    assert f"Key={tags[1].replace('=', ',Value=')} " in runbook
    assert f"Enabled=true,AttributeName={expiry} " in runbook
    assert table["DeletionProtectionEnabled"]
    assert "--deletion-protection-enabled" in runbook
