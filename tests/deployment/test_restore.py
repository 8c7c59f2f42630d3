"""What a restore makes, and what a cut-over carries over: nothing is lost, no id given twice."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest.mock import DEFAULT, MagicMock

import boto3
import pytest
import stamina
from moto import mock_aws

from tools.deployment import release, restore
from tools.deployment.service import DeploymentError
from tools.deployment.stage import Stage
from tools.local.service import load_template

PRODUCTION = Stage("production")
OLD = "animal-store-production-AnimalsTable-1A2B3C4D5E6F"
NEW = "animal-store-production-AnimalsTable-20270131023000"
OLD_KEYS = "animal-store-production-ApiKeysTable-1A2B3C4D5E6F"
NEW_KEYS = "animal-store-production-ApiKeysTable-20270131023000"
COUNTER = {"pk": "counter", "id": 0}


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[Any]:
    """Make the tables that the stage uses, and their restored copies."""
    tables = load_template().tables
    with pytest.MonkeyPatch.context() as environment, mock_aws():
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        dynamodb = boto3.resource("dynamodb")
        for name in (OLD, NEW, OLD_KEYS, NEW_KEYS):
            request = tables[name.split("-")[3]].request
            dynamodb.create_table(**request | {"TableName": name})
        yield dynamodb


@pytest.fixture(autouse=True)
def outputs(dynamodb: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Let the stage use its own tables; empty all."""
    for table in dynamodb.tables.all():
        names = [key["AttributeName"] for key in table.key_schema]
        for item in table.scan()["Items"]:
            table.delete_item(Key={name: item[name] for name in names})
    own = {"AnimalsTable": OLD, "ApiKeysTable": OLD_KEYS}
    outputs = {"AnimalsTableName": OLD, "ApiKeysTableName": OLD_KEYS}
    monkeypatch.setattr(restore, "_dynamodb", lambda: dynamodb)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(Stage, "wait", lambda _: None)
    monkeypatch.setattr(Stage, "outputs", lambda _: outputs)
    monkeypatch.setattr(Stage, "resources", lambda _: own)
    return outputs


@pytest.fixture(autouse=True)
def install(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """Take the place of a deployment."""
    install = MagicMock()
    monkeypatch.setattr(release, "fetched", lambda *_: contextlib.nullcontext("live"))
    monkeypatch.setattr(release, "install", install)
    return install


@pytest.fixture
def old(dynamodb: Any) -> Any:
    """The stack's own table."""
    return dynamodb.Table(OLD)


@pytest.fixture
def new(dynamodb: Any) -> Any:
    """The restored table."""
    return dynamodb.Table(NEW)


def counter(table: Any) -> Any:
    """Return a table's counter as it is."""
    return table.get_item(Key=COUNTER)["Item"]


def test_a_restored_table_is_protected_and_expires_as_before(
    dynamodb: Any, install: MagicMock
) -> None:
    client = dynamodb.meta.client
    expiry = {"Enabled": True, "AttributeName": "expires"}
    client.update_time_to_live(TableName=OLD, TimeToLiveSpecification=expiry)

    restored = restore.restore(PRODUCTION)
    restore.cut_over(PRODUCTION, restored)

    description = client.describe_table(TableName=restored)["Table"]
    backups = client.describe_continuous_backups(TableName=restored)
    assert description["DeletionProtectionEnabled"]
    assert "'PointInTimeRecoveryStatus': 'ENABLED'" in str(backups)
    assert restore._expiry(restored) == "expires"
    install.assert_called_once_with(
        PRODUCTION, "live", canary=False, tables={"AnimalsTable": restored}
    )


def test_a_cut_over_waits_until_the_new_table_can_be_protected(
    dynamodb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = dynamodb.meta.client
    not_yet = client.exceptions.ContinuousBackupsUnavailableException({}, "Update")
    update = MagicMock(side_effect=[not_yet, DEFAULT])
    monkeypatch.setattr(client, "update_continuous_backups", update)

    with stamina.set_testing(True, attempts=2):
        restore.cut_over(PRODUCTION, NEW)

    assert update.call_count == 2


def test_a_cut_over_refuses_the_table_of_another_stage() -> None:
    with pytest.raises(DeploymentError, match="not a table of staging"):
        restore.cut_over(Stage("staging"), NEW)


def test_a_cut_over_closes_the_old_table_and_opens_the_new_one(
    old: Any, new: Any
) -> None:
    old.put_item(Item={**COUNTER, "value": 7})
    new.put_item(Item={**COUNTER, "value": 6, "closed": "x"})

    restore.cut_over(PRODUCTION, NEW)

    assert counter(old) == {**COUNTER, "value": 7, "closed": NEW}
    assert counter(new) == {**COUNTER, "value": 7}


def test_what_is_under_way_when_the_table_is_closed_is_carried_over(
    old: Any, new: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_late(_: float) -> None:
        assert "closed" in counter(old)
        old.put_item(Item={"pk": "pet", "id": 1})

    monkeypatch.setattr("time.sleep", write_late)
    restore.cut_over(PRODUCTION, NEW)

    assert "Item" in new.get_item(Key={"pk": "pet", "id": 1})


def test_requests_end_before_anything_is_carried_over() -> None:
    template = load_template()
    longest = max(function.timeout_s for function in template.functions.values())
    assert longest < restore._DRAIN_S


@pytest.mark.parametrize("step", ["_close", "_add", "_never_repeat_ids"])
def test_a_cut_over_that_was_killed_can_be_repeated(
    old: Any, new: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    old.put_item(Item={"pk": "pet", "id": 7})
    old.put_item(Item={**COUNTER, "value": 7})
    with monkeypatch.context() as killed:
        killed.setattr(restore, step, MagicMock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            restore.cut_over(PRODUCTION, NEW)

    restore.cut_over(PRODUCTION, NEW)

    assert "Item" in new.get_item(Key={"pk": "pet", "id": 7})
    assert counter(new) == {**COUNTER, "value": 7}


def test_a_cut_over_whose_deployment_was_taken_back_can_be_undone(
    old: Any, new: Any
) -> None:
    old.put_item(Item={**COUNTER, "value": 1})
    restore.cut_over(PRODUCTION, NEW)
    # The new version takes a creation before CloudFormation goes back to the old one.
    new.put_item(Item={"pk": "pet", "id": 2})
    new.put_item(Item={**COUNTER, "value": 2})

    restore.cut_over(PRODUCTION, OLD)

    assert "Item" in old.get_item(Key={"pk": "pet", "id": 2})
    assert counter(old) == {**COUNTER, "value": 2}
    assert counter(new) == {**COUNTER, "value": 2, "closed": OLD}


@pytest.mark.parametrize(("before", "restored"), [(8, 3), (3, 8)])
def test_no_id_is_given_again_if_nothing_is_carried_over(
    old: Any, new: Any, before: int, restored: int
) -> None:
    old.put_item(Item={"pk": "pet", "id": 1})
    old.put_item(Item={**COUNTER, "value": before})
    new.put_item(Item={**COUNTER, "value": restored})

    restore.cut_over(PRODUCTION, NEW, carry=False)

    assert new.scan()["Items"] == [{**COUNTER, "value": 8}]


def test_animals_come_back_as_they_were_and_newer_ones_are_carried_over(
    old: Any, new: Any
) -> None:
    # At the restored moment, the creation of 6 was under way: it had taken its id.
    new.put_item(Item={**COUNTER, "value": 6})
    new.put_item(Item={"pk": "pet", "id": 1, "name": "as it was"})
    for pk, number in (("pet", 1), ("pet", 6), ("pet", 7), ("idempotency#x", 0)):
        old.put_item(Item={"pk": pk, "id": number})

    restore.cut_over(PRODUCTION, NEW)

    assert new.scan()["Count"] == 5
    assert new.get_item(Key={"pk": "pet", "id": 1})["Item"]["name"] == "as it was"


def test_a_key_that_is_revoked_during_the_deployment_stays_revoked(
    dynamodb: Any, install: MagicMock
) -> None:
    old, new = dynamodb.Table(OLD_KEYS), dynamodb.Table(NEW_KEYS)
    revoked = {"hash": "h", "revoked": 1}
    new.put_item(Item={"hash": "h"})
    install.side_effect = lambda *_, **__: old.put_item(Item=revoked)

    restore.cut_over(PRODUCTION, NEW_KEYS)

    assert new.scan()["Items"] == [revoked]


def test_keys_are_carried_over_by_a_repeat_after_the_deployment(
    dynamodb: Any, install: MagicMock, outputs: dict[str, str]
) -> None:
    install.side_effect = [KeyboardInterrupt, None]
    with pytest.raises(KeyboardInterrupt):
        restore.cut_over(PRODUCTION, NEW_KEYS)
    dynamodb.Table(OLD_KEYS).put_item(Item={"hash": "h"})
    # CloudFormation ends the deployment whether anybody waits or not.
    outputs["ApiKeysTableName"] = NEW_KEYS

    restore.cut_over(PRODUCTION, NEW_KEYS)

    assert dynamodb.Table(NEW_KEYS).scan()["Items"] == [{"hash": "h"}]
