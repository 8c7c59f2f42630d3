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
from tools.deployment.stage import DeploymentError, Stage
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
    monkeypatch.setattr(restore, "_dynamodb", lambda: dynamodb)
    for table in dynamodb.tables.all():
        names = [key["AttributeName"] for key in table.key_schema]
        for item in items(table.name):
            table.delete_item(Key={name: item[name] for name in names})
    own = {"AnimalsTable": OLD, "ApiKeysTable": OLD_KEYS}
    outputs = {"AnimalsTableName": OLD, "ApiKeysTableName": OLD_KEYS}
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


def put(table: str, *items: dict[str, Any]) -> None:
    """Write items."""
    for item in items:
        restore._table(table).put_item(Item=item)


def items(table: str) -> list[dict[str, Any]]:
    """Return what a table has."""
    found: list[Any] = restore._table(table).scan()["Items"]
    return sorted(found, key=str)


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


def test_a_restore_whose_answer_was_lost_has_named_its_table(
    dynamodb: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = dynamodb.meta.client

    def answer_again(**request: Any) -> None:
        assert f"TABLE={request['TargetTableName']}\n" in capsys.readouterr().out
        raise client.exceptions.TableAlreadyExistsException({}, "Restore")

    monkeypatch.setattr(client, "restore_table_to_point_in_time", answer_again)
    restore.restore(PRODUCTION)


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        ("describe_table", "ResourceNotFoundException"),
        ("update_continuous_backups", "ContinuousBackupsUnavailableException"),
    ],
)
def test_a_cut_over_waits_until_the_new_table_is_visible_and_can_be_protected(
    dynamodb: Any, monkeypatch: pytest.MonkeyPatch, operation: str, error: str
) -> None:
    client = dynamodb.meta.client
    not_yet = getattr(client.exceptions, error)({}, operation)
    answers = [not_yet, *10 * [DEFAULT]]
    call = MagicMock(wraps=getattr(client, operation), side_effect=answers)
    monkeypatch.setattr(client, operation, call)

    with stamina.set_testing(True, attempts=2):
        restore.cut_over(PRODUCTION, NEW)

    assert call.call_count > 1


def test_a_cut_over_refuses_the_table_of_another_stage() -> None:
    with pytest.raises(DeploymentError, match="not a table of staging"):
        restore.cut_over(Stage("staging"), NEW)


def test_a_cut_over_closes_the_old_table_and_opens_the_new_one() -> None:
    put(OLD, {**COUNTER, "value": 7})
    put(NEW, {**COUNTER, "value": 6, "closed": "x"})

    restore.cut_over(PRODUCTION, NEW)

    assert items(OLD) == [{**COUNTER, "value": 7, "closed": NEW}]
    assert items(NEW) == [{**COUNTER, "value": 7}]


def test_what_is_under_way_when_the_table_is_closed_is_carried_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def write_late(_: float) -> None:
        assert items(OLD) == [{**COUNTER, "closed": NEW}]
        put(OLD, {"pk": "pet", "id": 1})

    monkeypatch.setattr("time.sleep", write_late)
    restore.cut_over(PRODUCTION, NEW)

    assert {"pk": "pet", "id": 1} in items(NEW)


def test_requests_end_before_anything_is_carried_over() -> None:
    functions = load_template().functions.values()
    assert max(function.timeout_s for function in functions) < restore._DRAIN_S


@pytest.mark.parametrize("step", ["_close", "_add", "_never_repeat_ids"])
def test_a_cut_over_that_was_killed_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    put(OLD, {"pk": "pet", "id": 7}, {**COUNTER, "value": 7})
    with monkeypatch.context() as killed:
        killed.setattr(restore, step, MagicMock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            restore.cut_over(PRODUCTION, NEW)

    restore.cut_over(PRODUCTION, NEW)

    assert items(NEW) == [{**COUNTER, "value": 7}, {"pk": "pet", "id": 7}]


def test_a_cut_over_whose_deployment_was_taken_back_can_be_undone() -> None:
    put(OLD, {**COUNTER, "value": 1})
    restore.cut_over(PRODUCTION, NEW)
    # The new version takes a creation before CloudFormation goes back to the old one.
    put(NEW, {"pk": "pet", "id": 2}, {**COUNTER, "value": 2})

    restore.cut_over(PRODUCTION, OLD)

    assert items(OLD) == [{**COUNTER, "value": 2}, {"pk": "pet", "id": 2}]
    assert {**COUNTER, "value": 2, "closed": OLD} in items(NEW)


@pytest.mark.parametrize(("before", "restored"), [(8, 3), (3, 8)])
def test_no_id_is_given_again_if_nothing_is_carried_over(
    before: int, restored: int
) -> None:
    put(OLD, {"pk": "pet", "id": 1}, {**COUNTER, "value": before})
    put(NEW, {**COUNTER, "value": restored})

    restore.cut_over(PRODUCTION, NEW, carry=False)

    assert items(NEW) == [{**COUNTER, "value": 8}]


def test_animals_come_back_as_they_were_and_newer_ones_are_carried_over() -> None:
    request = {"pk": "idempotency#x", "id": 0}
    first = {"pk": "pet", "id": 1, "name": "as it was"}
    # At the restored moment, the creation of 6 was under way: it had taken its id.
    sixth, seventh = {"pk": "pet", "id": 6}, {"pk": "pet", "id": 7}
    put(NEW, first, {**COUNTER, "value": 6})
    put(OLD, {"pk": "pet", "id": 1}, sixth, seventh, request)

    restore.cut_over(PRODUCTION, NEW)

    assert items(NEW) == [{**COUNTER, "value": 6}, request, first, sixth, seventh]


def test_a_key_that_is_revoked_during_the_deployment_stays_revoked(
    install: MagicMock,
) -> None:
    put(NEW_KEYS, {"hash": "h"})
    revoked = {"hash": "h", "revoked": 1}
    install.side_effect = lambda *_, **__: put(OLD_KEYS, revoked)

    restore.cut_over(PRODUCTION, NEW_KEYS)

    assert items(NEW_KEYS) == [revoked]


def test_keys_are_carried_over_by_a_repeat_after_the_deployment(
    install: MagicMock, outputs: dict[str, str]
) -> None:
    install.side_effect = [KeyboardInterrupt, None]
    with pytest.raises(KeyboardInterrupt):
        restore.cut_over(PRODUCTION, NEW_KEYS)
    put(OLD_KEYS, {"hash": "h"})
    # CloudFormation ends the deployment whether anybody waits or not.
    outputs["ApiKeysTableName"] = NEW_KEYS

    restore.cut_over(PRODUCTION, NEW_KEYS)

    assert items(NEW_KEYS) == [{"hash": "h"}]
