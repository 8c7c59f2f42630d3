"""What a restore prepares, and what a cut-over carries over: nothing is lost, no id given twice."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from tools.deployment import release, restore
from tools.deployment.stage import Stage
from tools.local.service import load_template

PRODUCTION = Stage("production")
COUNTER = {"pk": "counter", "id": 0}


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Make `animals` and `keys`, which the stage uses, and their restored copies, empty."""
    in_use = {"AnimalsTableName": "animals", "ApiKeysTableName": "keys"}
    own = {"AnimalsTable": "animals", "ApiKeysTable": "keys"}
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(restore, "_DRAIN_S", 0)
    monkeypatch.setattr(Stage, "wait", lambda _: None)
    monkeypatch.setattr(Stage, "outputs", lambda _: in_use)
    monkeypatch.setattr(Stage, "resources", lambda _: own)
    with mock_aws():
        for name, table in own.items():
            request = load_template().tables[name].request
            for each in (table, f"{table}-restored"):
                boto3.client("dynamodb").create_table(**request | {"TableName": each})
        yield boto3.resource("dynamodb").Table


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Keep the tables that each deployment is to use."""
    deployments: list[Any] = []
    nothing = contextlib.nullcontext()
    monkeypatch.setattr(release, "fetched", lambda *_: nothing)
    monkeypatch.setattr(
        release, "install", lambda *_, tables, **__: deployments.append(tables)
    )
    return deployments


def counter(table: Any) -> Any:
    """Return a table's counter as it is."""
    return table.get_item(Key=COUNTER)["Item"]


def test_a_cut_over_closes_the_old_table_and_opens_the_new_one(
    tables: Any, installed: list[Any]
) -> None:
    tables("animals").put_item(Item={**COUNTER, "value": 7})
    tables("animals-restored").put_item(Item={**COUNTER, "value": 6, "closed": 1})

    restore.cut_over(PRODUCTION, "animals-restored")

    assert "closed" in counter(tables("animals"))
    assert counter(tables("animals-restored")) == {**COUNTER, "value": 7}
    assert installed == [{"AnimalsTable": "animals-restored"}]


@pytest.mark.usefixtures("installed")
def test_what_is_under_way_when_the_table_is_closed_is_carried_over(
    tables: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_late(_: float) -> None:
        assert "closed" in counter(tables("animals"))
        tables("animals").put_item(Item={"pk": "pet", "id": 1})

    monkeypatch.setattr(restore, "time", MagicMock(sleep=write_late, time=lambda: 0))
    restore.cut_over(PRODUCTION, "animals-restored")

    assert "Item" in tables("animals-restored").get_item(Key={"pk": "pet", "id": 1})


@pytest.mark.parametrize("step", ["_close", "carry_over", "_open"])
def test_a_cut_over_that_was_killed_can_be_repeated(
    tables: Any, installed: list[Any], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    tables("animals").put_item(Item={"pk": "pet", "id": 7})
    tables("animals").put_item(Item={**COUNTER, "value": 7})
    with monkeypatch.context() as killed:
        killed.setattr(restore, step, MagicMock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            restore.cut_over(PRODUCTION, "animals-restored")

    restore.cut_over(PRODUCTION, "animals-restored")

    assert tables("animals-restored").scan()["Count"] == 2
    assert counter(tables("animals-restored")) == {**COUNTER, "value": 7}
    assert installed == [{"AnimalsTable": "animals-restored"}]


def test_a_repeat_after_the_deployment_carries_over_from_the_table_that_was_left(
    tables: Any, installed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    restore.cut_over(PRODUCTION, "animals-restored")
    outputs = {"AnimalsTableName": "animals-restored", "ApiKeysTableName": "keys"}
    monkeypatch.setattr(Stage, "outputs", lambda _: outputs)
    tables("animals").put_item(Item={"pk": "pet", "id": 8})

    restore.cut_over(PRODUCTION, "animals-restored")

    assert "Item" in tables("animals-restored").get_item(Key={"pk": "pet", "id": 8})
    assert len(installed) == 2


@pytest.mark.usefixtures("installed")
def test_a_cut_over_whose_deployment_was_taken_back_can_be_undone(tables: Any) -> None:
    tables("animals").put_item(Item={**COUNTER, "value": 1})
    restore.cut_over(PRODUCTION, "animals-restored")
    # The new version takes a creation before CloudFormation goes back to the old one.
    tables("animals-restored").put_item(Item={"pk": "pet", "id": 2})
    tables("animals-restored").put_item(Item={**COUNTER, "value": 2})

    restore.cut_over(PRODUCTION, "animals")

    assert "Item" in tables("animals").get_item(Key={"pk": "pet", "id": 2})
    assert counter(tables("animals")) == {**COUNTER, "value": 2}
    assert "closed" in counter(tables("animals-restored"))


@pytest.mark.usefixtures("installed")
def test_no_id_is_given_again_if_nothing_is_carried_over(tables: Any) -> None:
    tables("animals").put_item(Item={**COUNTER, "value": 50})
    tables("animals-restored").put_item(Item={**COUNTER, "value": 40})

    restore.cut_over(PRODUCTION, "animals-restored", carry=False)

    assert counter(tables("animals-restored")) == {**COUNTER, "value": 50}


@pytest.mark.usefixtures("installed")
def test_a_key_that_is_revoked_during_the_deployment_stays_revoked(
    tables: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables("keys").put_item(Item={"hash": "h"})

    def revoke_meanwhile(*_: Any, **__: Any) -> None:
        tables("keys").put_item(Item={"hash": "h", "revoked": 1})

    monkeypatch.setattr(release, "install", revoke_meanwhile)
    restore.cut_over(PRODUCTION, "keys-restored", "ApiKeysTable")

    assert "revoked" in tables("keys-restored").get_item(Key={"hash": "h"})["Item"]


def test_requests_end_before_anything_is_carried_over() -> None:
    template = load_template()
    longest = max(function.timeout_s for function in template.functions.values())
    assert longest < restore._DRAIN_S


def test_the_stacks_own_table_comes_back(
    tables: Any, installed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = {"AnimalsTableName": "animals-restored", "ApiKeysTableName": "keys"}
    monkeypatch.setattr(Stage, "outputs", lambda _: outputs)
    tables("animals").put_item(Item={**COUNTER, "closed": 1})

    restore.cut_over(PRODUCTION, "animals")

    assert installed == [{}]
    assert "closed" not in counter(tables("animals"))


def test_animals_come_back_as_they_were_and_newer_ones_are_carried_over(
    tables: Any,
) -> None:
    old, new = tables("animals"), tables("animals-restored")
    # At the restored moment, the creation of 6 was under way: it had taken its id.
    for pk, number in (("pet", 1), ("pet", 6), ("pet", 7), ("idempotency#x", 0)):
        old.put_item(Item={"pk": pk, "id": number})
    restore.never_repeat_ids("animals", 7)
    new.put_item(Item={"pk": "pet", "id": 1, "name": "as it was"})
    restore.never_repeat_ids("animals-restored", 6)

    restore.carry_over("AnimalsTable", "animals", "animals-restored")

    assert new.scan()["Count"] == 5
    assert new.get_item(Key={"pk": "pet", "id": 1})["Item"]["name"] == "as it was"


@pytest.mark.usefixtures("tables")
def test_the_counter_is_never_set_back() -> None:
    restore.never_repeat_ids("animals", 8)
    restore.never_repeat_ids("animals", 3)
    assert restore.counter("animals") == 8


@pytest.mark.parametrize(
    ("old", "restored", "expected"),
    [
        ({"label": "new"}, {"label": "as it was"}, {"label": "as it was"}),
        ({"revoked": 1}, {"label": "as it was"}, {"revoked": 1}),
        ({"label": "new"}, None, {"label": "new"}),
        (None, {"label": "as it was"}, {"label": "as it was"}),
    ],
    ids=["kept", "revoked", "issued", "deleted"],
)
def test_a_revocation_is_carried_over(
    tables: Any,
    old: dict[str, Any] | None,
    restored: dict[str, Any] | None,
    expected: Any,
) -> None:
    for table, item in (("keys", old), ("keys-restored", restored)):
        if item is not None:
            tables(table).put_item(Item={"hash": "h", **item})

    restore.carry_over("ApiKeysTable", "keys", "keys-restored")

    found = tables("keys-restored").get_item(Key={"hash": "h"})["Item"]
    assert found == {"hash": "h", **expected}


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Take the place of DynamoDB: the new table refuses its backups at first."""
    dynamodb = MagicMock()
    dynamodb.exceptions.TableAlreadyExistsException = KeyError
    not_yet: Any = {"Error": {"Code": "ContinuousBackupsUnavailableException"}}
    dynamodb.update_continuous_backups.side_effect = [
        ClientError(not_yet, "Update"),
        {},
    ]
    dynamodb.describe_time_to_live.side_effect = lambda TableName: {  # noqa: N803
        "TimeToLiveDescription": {"AttributeName": "expires"}
        if TableName == "animals"
        else {}
    }
    monkeypatch.setattr(restore, "client", lambda _: dynamodb)
    monkeypatch.setattr(Stage, "outputs", lambda _: {"AnimalsTableName": "animals"})
    return dynamodb


def test_a_restore_protects_the_new_table_as_soon_as_it_can(dynamodb: Any) -> None:
    restore.restore(PRODUCTION, into="new")

    assert dynamodb.update_continuous_backups.call_count == 2
    dynamodb.update_table.assert_called_once_with(
        TableName="new", DeletionProtectionEnabled=True
    )
    dynamodb.update_time_to_live.assert_called_once()


def test_a_restore_names_the_new_table_before_it_waits(
    dynamodb: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    dynamodb.get_waiter.side_effect = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        restore.restore(PRODUCTION)
    assert "--into animal-store-production-AnimalsTable-" in capsys.readouterr().out


def test_a_restore_goes_on_with_a_table_that_is_there(dynamodb: Any) -> None:
    dynamodb.restore_table_to_point_in_time.side_effect = KeyError
    assert restore.restore(PRODUCTION, into="new") == "new"
