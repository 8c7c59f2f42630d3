"""The steps of a deployment, from an empty account to a deleted stack, each on top of the last.

`make rehearse` takes them on an emulator of AWS, `make first-flight` in a real account, with the
functions behind the commands and, unless a step is marked, in the role of the pipeline.
"""

import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import boto3
import httpx2
import pytest
import stamina
from animal_store_client import Client, Pet
from botocore.exceptions import ClientError

from tests.rehearsal import places
from tests.rehearsal.conftest import BUILD, IS_ON_AWS, Rehearsal
from tools.deployment import bootstrap, check_stage, release, restore
from tools.deployment.service import check_contract, temporary_key
from tools.deployment.stage import TABLES, DeploymentError, Stage
from tools.packaging.bytecode import compile_tree

# A text of the layer that every operation answers with, and what a changed layer answers.
TEXT = "Missing or invalid API key."
CHANGED_TEXT = "Missing or invalid API key: this is the changed layer."
# Of eight writers; 0 is hoped for, and a shared machine pauses.
LONGEST_GAP_S = 10
only_aws = pytest.mark.skipif(not IS_ON_AWS, reason="the emulator cannot show it")


def change_layer(rehearsal: Rehearsal, name: str, new: str) -> Path:
    """Build a layer with another text in its errors."""
    build = Path(shutil.copytree(BUILD, rehearsal.folder / name))
    source = build / "CommonLayer/python/animal_store/errors.py"
    text = source.read_text("utf-8")
    assert text.count(TEXT) == 1
    source.write_text(text.replace(TEXT, new), "utf-8")
    compile_tree(build / "CommonLayer/python", "/opt/python")
    return build


def deploy(rehearsal: Rehearsal, path: Path, *, canary: bool = False) -> None:
    """Deploy an artifact that passes its check."""
    with release.opened(path) as artifact:
        release.deploy_and_check(
            rehearsal.stage, artifact, check_stage.check, canary=canary
        )


def assert_every_operation_answers(base_url: str, message: str) -> None:
    """Ask every operation without a key and compare what it says."""
    expected = {"code": "unauthorized", "message": message, "status": 401}
    for method, path in (("GET", "/pets"), ("POST", "/pets"), ("GET", "/pets/1")):
        assert httpx2.request(method, base_url + path, timeout=30).json() == expected


@pytest.mark.administrator
def test_bootstrap(rehearsal: Rehearsal) -> None:
    bootstrap.create(rehearsal.stage, places.parameters())


def test_deploy(rehearsal: Rehearsal) -> None:
    deploy(rehearsal, rehearsal.pack("first"), canary=True)
    rehearsal.deployed_first = release.released(rehearsal.stage)


@pytest.mark.role("CheckRole")
def test_the_contract_suite_passes(rehearsal: Rehearsal) -> None:
    place = "aws" if IS_ON_AWS else "rehearsal"
    with temporary_key(rehearsal.stage) as key:
        check_contract(rehearsal.stage, key, place)
    assert_every_operation_answers(rehearsal.base_url, TEXT)
    # A subscription is confirmed by hand.
    unheard = "alarms reach nobody: no subscription to their topic is confirmed"
    lapses = [*check_stage.lapses(rehearsal.stage)]
    # The emulator keeps neither backups nor expiry.
    assert not IS_ON_AWS or lapses in ([], [unheard])


def test_a_changed_parameter_alone_is_planned_and_reaches_live(
    rehearsal: Rehearsal,
) -> None:
    path = rehearsal.pack("memory", BUILD, "MemorySize=512")
    with release.opened(path) as artifact:
        assert "CreatePetFunction" in release.plan(rehearsal.stage, artifact)
    assert release.released(rehearsal.stage) == rehearsal.deployed_first
    deploy(rehearsal, path, canary=True)


def test_a_deployment_whose_check_fails_is_taken_back(rehearsal: Rehearsal) -> None:
    stage, before = rehearsal.stage, release.released(rehearsal.stage)

    def fail(*_: object) -> None:
        assert_every_operation_answers(rehearsal.base_url, CHANGED_TEXT)
        raise DeploymentError("the check fails")

    build = change_layer(rehearsal, "changed", CHANGED_TEXT)
    with release.opened(rehearsal.pack("changed", build)) as artifact:
        with pytest.raises(DeploymentError, match="the check fails"):
            release.deploy_and_check(stage, artifact, fail, canary=False)
        passed = release.fetched(stage, artifact.name, "passed")
        with pytest.raises(DeploymentError, match="not one artifact"):
            passed.__enter__()

    assert_every_operation_answers(rehearsal.base_url, TEXT)
    with release.fetched(stage, before) as artifact:
        check_stage.check(stage, artifact)


def test_the_same_change_again(rehearsal: Rehearsal) -> None:
    deploy(rehearsal, rehearsal.folder / "changed.zip")
    assert_every_operation_answers(rehearsal.base_url, CHANGED_TEXT)


def test_rollback(rehearsal: Rehearsal) -> None:
    stage = rehearsal.stage
    with release.fetched(stage, rehearsal.deployed_first, "passed") as artifact:
        release.deploy_and_check(stage, artifact, check_stage.check, canary=False)
    assert_every_operation_answers(rehearsal.base_url, TEXT)
    assert stage.used_parameters()["MemorySize"] == "1024"


@only_aws  # the emulator has no CodeDeploy
def test_a_canary_that_fails_is_taken_back(rehearsal: Rehearsal) -> None:
    before = release.released(rehearsal.stage)
    build = change_layer(rehearsal, "broken", '" + None + "')
    path = rehearsal.pack("broken", build, "DeploymentType=Canary10Percent5Minutes")
    with pytest.raises(DeploymentError, match="failed"):
        deploy(rehearsal, path, canary=True)
    assert rehearsal.stage.status() == "UPDATE_ROLLBACK_COMPLETE"
    assert release.released(rehearsal.stage) == before
    assert_every_operation_answers(rehearsal.base_url, TEXT)


@only_aws  # the emulator's API Gateway answers otherwise
@pytest.mark.administrator
def test_a_throttled_function_is_answered_with_503(rehearsal: Rehearsal) -> None:
    functions, name = (
        boto3.client("lambda"),
        rehearsal.stage.resources()["ListPetsFunction"],
    )
    headers = {"Authorization": f"Bearer animal_test_{'0' * 38}"}
    functions.put_function_concurrency(
        FunctionName=name, ReservedConcurrentExecutions=0
    )
    begin = datetime.now(UTC)
    try:
        time.sleep(10)
        response = httpx2.get(f"{rehearsal.base_url}/pets", headers=headers)
    finally:
        functions.delete_function_concurrency(FunctionName=name)
    assert response.status_code == httpx2.codes.SERVICE_UNAVAILABLE
    assert response.json()["code"] == "service_unavailable"
    assert response.headers["Retry-After"]
    assert_server_errors(rehearsal.stage, begin)


@stamina.retry(on=AssertionError, attempts=None, timeout=600, wait_initial=30)
def assert_server_errors(stage: Stage, begin: datetime) -> None:
    """Wait until API Gateway has counted a 5XXError."""
    metric = boto3.resource("cloudwatch").Metric("AWS/ApiGateway", "5XXError")
    names = {"ApiName": stage.stack, "Stage": stage.name}
    answer = metric.get_statistics(
        Dimensions=[{"Name": name, "Value": names[name]} for name in names],
        StartTime=begin,
        EndTime=datetime.now(UTC),
        Period=60,
        Statistics=["Sum"],
    )
    assert any(each["Sum"] for each in answer["Datapoints"]), (
        "API Gateway counts the changed status as 4XXError: alarms on 5XXError miss it"
    )


@only_aws  # nothing on the emulator sets off an alarm
@pytest.mark.administrator
def test_an_alarm_reaches_its_topic(rehearsal: Rehearsal) -> None:
    name = rehearsal.stage.resources()["ListPetsHeartbeatAlarm"]
    alarm = boto3.resource("cloudwatch").Alarm(name)
    alarm.set_state(StateValue="ALARM", StateReason="first flight")
    time.sleep(60)
    history = alarm.describe_history(HistoryItemType="Action")["AlarmHistoryItems"]
    assert "Successfully executed action" in history[0]["HistorySummary"]


@contextmanager
def writing(stage: Stage) -> Iterator[tuple[Client, list[tuple[float, Pet]]]]:
    """Let eight clients add animals, and note each with the time of its acknowledgement."""
    created: list[tuple[float, Pet]] = []
    ended = threading.Event()
    with (
        temporary_key(stage) as key,
        Client(stage.outputs()["BaseUrl"], key) as client,
        ThreadPoolExecutor(8) as pool,
    ):

        def write(number: int) -> None:
            while not ended.is_set():
                pet = client.create(f"animal of {number}", number)
                created.append((time.monotonic(), pet))

        pool.map(write, range(8))
        try:
            yield client, created
        finally:
            ended.set()


@pytest.mark.role("OperatorRole")
def test_damage_is_repaired_under_writers(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(rehearsal.folder)
    stage = rehearsal.stage
    table = boto3.resource("dynamodb").Table(stage.resources()["AnimalsTable"])
    with writing(stage) as (client, created):
        # On AWS the latest moment that can be restored is five minutes old.
        time.sleep(400 if IS_ON_AWS else 10)
        moment = datetime.fromtimestamp(time.time() - 350 * IS_ON_AWS, UTC).isoformat()
        restore.restore(stage, moment)
        (_, first), (_, second), *_ = created
        table.delete_item(Key={"pk": "pet", "id": first.id})
        table.update_item(
            Key={"pk": "pet", "id": second.id},
            UpdateExpression="SET categoryId = :wrong",
            ExpressionAttributeValues={":wrong": 9},
        )
        begin = time.monotonic()
        restore.restore(stage, moment, apply=True)
        end = time.monotonic()
        acknowledged = [pet for _, pet in created]
        times = [at for at, _ in created if begin < at < end]
        kept = {pet.id: pet.raw for pet in client.pets()}

    assert len({pet.id for pet in acknowledged}) == len(acknowledged)
    lost = [pet for pet in acknowledged if kept.get(pet.id) != pet.raw]
    assert lost == []
    gap = max(b - a for a, b in pairwise([begin, *times, end]))
    print(f"repaired in {end - begin:.1f} s: {len(times)} created, {gap:.2f} s without")
    assert gap < LONGEST_GAP_S


@pytest.mark.administrator
def test_a_table_is_deleted(rehearsal: Rehearsal) -> None:
    client, name = boto3.client("dynamodb"), rehearsal.stage.resources()["AnimalsTable"]
    rehearsal.animals = client.scan(TableName=name, Select="COUNT")["Count"]
    if not IS_ON_AWS:  # AWS makes one of each deleted table
        client.create_backup(TableName=name, BackupName="deleted")
    client.update_table(TableName=name, DeletionProtectionEnabled=False)
    client.delete_table(TableName=name)
    client.get_waiter("table_not_exists").wait(TableName=name)


@pytest.mark.role("OperatorRole")
def test_the_deleted_table_is_restored(rehearsal: Rehearsal) -> None:
    restore.restore(rehearsal.stage, apply=True)
    table = boto3.resource("dynamodb").Table(
        rehearsal.stage.resources()["AnimalsTable"]
    )
    assert table.scan(Select="COUNT")["Count"] == rehearsal.animals


@pytest.mark.administrator
def test_delete(rehearsal: Rehearsal) -> None:
    stage, cloudformation = rehearsal.stage, boto3.client("cloudformation")
    resources = stage.resources()
    with pytest.raises(ClientError, match=r"(?i)protect"):
        cloudformation.delete_stack(StackName=stage.stack)
    cloudformation.update_termination_protection(
        StackName=stage.stack, EnableTerminationProtection=False
    )
    cloudformation.delete_stack(StackName=stage.stack)
    stage.wait()
    for table in TABLES:
        with pytest.raises(ClientError, match=r"(?i)protect"):
            boto3.client("dynamodb").delete_table(TableName=resources[table])
