"""The steps of a deployment, from an empty account to a deleted stack, each on top of the last.

`make rehearse` takes them on an emulator of AWS, `make first-flight` in a real account, with the
functions behind the commands and, unless a step is marked, in the role of the pipeline.
"""

import os
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import boto3
import httpx2
import pytest
from botocore.exceptions import ClientError

from tests.rehearsal import places
from tests.rehearsal.conftest import BUILD, IS_ON_AWS, Rehearsal
from tools import ROOT
from tools.deployment import bootstrap, check_stage, release, restore
from tools.deployment.service import check_contract, temporary_keys
from tools.deployment.stage import TABLES, DeploymentError, Stage
from tools.packaging.bytecode import compile_tree

# A text of the layer that every operation answers with, and what a changed layer answers.
TEXT = "Missing or invalid API key."
CHANGED_TEXT = "Missing or invalid API key: this is the changed layer."
# Every action of the commands; tests/deployment/test_permissions.py evaluates them by role.
CALLS = [ROOT / f"tests/deployment/{name}_calls.txt" for name in ("check", "pipeline")]
# Actions that are not named like the call.
ACTIONS = {
    "lambda:GetLayerVersionByArn": "lambda:GetLayerVersion",
    "s3:HeadObject": "s3:GetObject",
    "s3:ListObjectsV2": "s3:ListBucket",
}
NOT_CALLED = {
    "cloudformation:CancelUpdateStack",  # for a deployment that is interrupted
    # CloudFormation asks for them in CreateChangeSet.
    "cloudformation:TagResource",
    "iam:PassRole",
    "cloudformation:DescribeEvents",  # after a failure
    "lambda:GetAccountSettings",  # only where a stage reserves concurrency
}
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
        check = partial(check_stage.check, rehearsal.stage, artifact)
        release.deploy_and_check(rehearsal.stage, artifact, check, canary=canary)


def assert_every_operation_answers(base_url: str, message: str) -> None:
    """Ask every operation without a key and compare what it says."""
    expected = {"code": "unauthorized", "message": message, "status": 401}
    for method, path in (("GET", "/pets"), ("POST", "/pets"), ("GET", "/pets/1")):
        assert httpx2.request(method, base_url + path, timeout=30).json() == expected


@pytest.mark.administrator
def test_bootstrap(rehearsal: Rehearsal) -> None:
    bootstrap.create(rehearsal.stage, places.parameters())


@pytest.mark.skipif(IS_ON_AWS, reason="no token of GitHub's is there")
@pytest.mark.administrator
@pytest.mark.parametrize(
    ("environment", "ref"),
    [
        ("{stage}", "refs/heads/other"),
        ("{stage}", "refs/tags/main"),
        ("{stage}-check", "refs/heads/main"),
    ],
)
def test_no_other_job_deploys(rehearsal: Rehearsal, environment: str, ref: str) -> None:
    stage = rehearsal.stage
    arn = stage.account()["DeployRoleArn"]
    with pytest.raises(ClientError, match="AccessDenied"):
        places.assume_as_job(arn, environment.format(stage=stage.name), ref)


def test_deploy(rehearsal: Rehearsal) -> None:
    deploy(rehearsal, rehearsal.pack("first"), canary=True)
    rehearsal.deployed_first = release.released(rehearsal.stage)


@pytest.mark.role("CheckRole")
def test_the_contract_suite_passes(rehearsal: Rehearsal) -> None:
    place = "aws" if IS_ON_AWS else "rehearsal"
    with temporary_keys(rehearsal.stage) as keys:
        check_contract(rehearsal.stage, keys, place)
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

    def fail() -> None:
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
        check = partial(check_stage.check, stage, artifact)
        release.deploy_and_check(stage, artifact, check, canary=False, is_rollback=True)
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
    assert server_errors(rehearsal.stage, begin), (
        "API Gateway counts the changed status as 4XXError: alarms on 5XXError miss it"
    )


def server_errors(stage: Stage, begin: datetime) -> list[Any]:
    """Wait until API Gateway has counted a 5XXError; return no sum if it does not."""
    dimensions = [
        {"Name": "ApiName", "Value": stage.stack},
        {"Name": "Stage", "Value": stage.name},
    ]
    metric = boto3.resource("cloudwatch").Metric("AWS/ApiGateway", "5XXError")
    sums: list[Any] = []
    deadline = time.monotonic() + 600
    while not sums and time.monotonic() < deadline:
        time.sleep(30)
        answer = metric.get_statistics(
            Dimensions=dimensions,
            StartTime=begin,
            EndTime=datetime.now(UTC),
            Period=60,
            Statistics=["Sum"],
        )
        sums = [each["Sum"] for each in answer["Datapoints"] if each["Sum"]]
    return sums


@only_aws  # nothing on the emulator sets off an alarm
@pytest.mark.administrator
def test_an_alarm_reaches_its_topic(rehearsal: Rehearsal) -> None:
    name = rehearsal.stage.resources()["RefusalsAlarm"]
    alarm = boto3.resource("cloudwatch").Alarm(name)
    alarm.set_state(StateValue="ALARM", StateReason="first flight")
    time.sleep(60)
    history = alarm.describe_history(HistoryItemType="Action")["AlarmHistoryItems"]
    assert "Successfully executed action" in history[0]["HistorySummary"]


class Writers:
    """Eight clients that add animals until they are stopped."""

    def __init__(self, base_url: str, key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self.http = httpx2.Client(base_url=base_url, headers=headers, timeout=30)
        self.created: list[dict[str, Any]] = []
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(8)
        self._pool.map(self._write, map(str, range(8)))

    def _write(self, name: str) -> None:
        while not self._stop.is_set():
            response = self.http.post("/pets", json={"name": name, "categoryId": 1})
            if response.status_code == httpx2.codes.CREATED:
                self.created.append(response.json())

    def wait_for_more(self) -> None:
        """Wait until some more animals were added."""
        goal, deadline = len(self.created) + 20, time.monotonic() + 120
        while len(self.created) < goal:
            assert time.monotonic() < deadline, "nothing can be created"
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop them, after the requests that are under way."""
        self._stop.set()
        self._pool.shutdown()

    def list_all(self) -> list[dict[str, Any]]:
        """Read every page of the list."""
        page = self.http.get("/pets", params={"limit": 100}).raise_for_status()
        pets: list[dict[str, Any]] = page.json()
        while "next" in page.links:
            page = self.http.get(page.links["next"]["url"]).raise_for_status()
            pets += page.json()
        return pets


@pytest.fixture
def writers(rehearsal: Rehearsal) -> Iterator[Writers]:
    """Let clients write for the time of a step."""
    with temporary_keys(rehearsal.stage) as keys:
        writers = Writers(rehearsal.base_url, keys[0])
        yield writers
        writers.stop()
        writers.http.close()


@pytest.mark.administrator
def test_damage_is_repaired_under_writers(
    rehearsal: Rehearsal, writers: Writers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(rehearsal.folder)
    table = boto3.resource("dynamodb").Table(
        rehearsal.stage.resources()["AnimalsTable"]
    )
    writers.wait_for_more()
    if IS_ON_AWS:  # the latest moment that can be restored is five minutes old
        time.sleep(400)
    moment = datetime.fromtimestamp(time.time() - 350 * IS_ON_AWS, UTC).isoformat()
    restore.restore(rehearsal.stage, moment)
    first, second = (pet["id"] for pet in writers.created[:2])
    table.delete_item(Key={"pk": "pet", "id": first})
    table.update_item(
        Key={"pk": "pet", "id": second},
        UpdateExpression="SET categoryId = :wrong",
        ExpressionAttributeValues={":wrong": 2},
    )
    before = len(writers.created)
    restore.restore(rehearsal.stage, moment, apply=True)
    assert len(writers.created) > before, "nothing was created meanwhile"
    writers.stop()

    kept = writers.list_all()
    ids = [pet["id"] for pet in kept]
    assert len(ids) == len(set(ids))
    created = sorted(writers.created, key=itemgetter("id"))
    assert created == [pet for pet in kept if pet in created]


@pytest.mark.administrator
def test_a_deleted_table_is_restored(rehearsal: Rehearsal) -> None:
    client, name = boto3.client("dynamodb"), rehearsal.stage.resources()["AnimalsTable"]
    before = client.scan(TableName=name, Select="COUNT")["Count"]
    if not IS_ON_AWS:  # AWS makes one of each deleted table
        client.create_backup(TableName=name, BackupName="deleted")
    client.update_table(TableName=name, DeletionProtectionEnabled=False)
    client.delete_table(TableName=name)
    client.get_waiter("table_not_exists").wait(TableName=name)

    restore.restore(rehearsal.stage, apply=True)

    assert client.scan(TableName=name, Select="COUNT")["Count"] == before


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


@pytest.mark.skipif(IS_ON_AWS, reason="calls are recorded on the emulator")
def test_the_calls_are_those_whose_permissions_are_evaluated() -> None:
    calls = Path(os.environ["RECORDED_CALLS"]).read_text("utf-8").split()
    called = {ACTIONS.get(call, call) for call in calls}
    called.discard("sts:GetCallerIdentity")  # needs no permission
    listed = set()
    for path in CALLS:
        listed |= {line.split()[0] for line in path.read_text("utf-8").splitlines()}
    assert called | NOT_CALLED == listed, (
        "An action on the left alone is called: add it to one of CALLS with its resource, and what "
        "test_permissions.py then refuses to a policy of bootstrap.yaml. One on the right alone "
        "is no longer called: remove its lines, and its right."
    )
