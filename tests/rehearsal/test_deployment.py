"""The steps of a stage's life, from an empty account to a deleted stack, each on top of the last.

`make rehearse` takes them on an emulator of AWS, `make first-flight` in a real account, with the
functions behind the commands and in the roles of bootstrap.yaml.
"""

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from unittest import mock

import boto3
import pytest
from animal_store_client import Client, Pet
from botocore.exceptions import ClientError

from tests.rehearsal.conftest import IS_ON_AWS
from tools import ROOT
from tools.deployment import bootstrap, restore
from tools.deployment.deploy import check_key, deploy, last_good, rollback
from tools.deployment.stage import DeploymentError, Stage
from tools.deployment.status import resources, status
from tools.packaging import artifact
from tools.packaging.targets import TARGETS

BUILD = TARGETS["arm64" if IS_ON_AWS else "x86_64"].build_dir
# No name on GitHub begins with a hyphen: the roles trust nobody's repository.
REPOSITORY = ["Owner=-", "OwnerId=0", "Repository=-", "RepositoryId=0"]
# Of every artifact; the emulator knows no reserved concurrency.
PARAMETERS = [] if IS_ON_AWS else ["Architecture=x86_64", "ReservedConcurrency=0"]
# Nobody confirms the subscription; and the emulator keeps neither backups nor expiry.
FOUND = 1 if IS_ON_AWS else 3


def pack(folder: Path, commit: str, *parameters: str, build: Path = BUILD) -> Path:
    """Pack a build as an artifact of a commit, with other parameters of the stages."""
    config, packed = folder / "samconfig.toml", folder / f"{commit}.zip"
    text, last = (ROOT / "samconfig.toml").read_text("utf-8"), '    "LogRetentionDays='
    for parameter in (*PARAMETERS, *parameters):
        text = text.replace(last, f'    "{parameter}",\n{last}')
    config.write_text(text, "utf-8")
    with mock.patch.object(artifact, "commit", return_value=commit):
        artifact.pack(build, packed, config)
    return packed


def memory(stage: Stage) -> int:
    """Return the memory of what answers for getPet."""
    name = find(stage, "GetPetFunction")
    answer = boto3.client("lambda").get_function(FunctionName=name, Qualifier="live")
    return int(answer["Configuration"]["MemorySize"])


def find(stage: Stage, logical_id: str) -> str:
    """Name a resource of the stack."""
    names = {each["LogicalResourceId"]: each for each in resources(stage)}
    return str(names[logical_id]["PhysicalResourceId"])


@pytest.mark.role("administrator")
def test_bootstrap(stage: Stage) -> None:
    parameters = [*REPOSITORY]
    providers = boto3.client("iam").list_open_id_connect_providers()
    if providers["OpenIDConnectProviderList"]:
        parameters.append("CreateOidcProvider=false")
    if "cloudwatchRoleArn" in boto3.client("apigateway").get_account():
        parameters.append("CreateApiGatewayLoggingRole=false")
    bootstrap.create(stage, parameters)


def test_deploy(stage: Stage, tmp_path: Path) -> None:
    deploy(stage, pack(tmp_path, "first"), attested=False)
    assert (last_good(stage), memory(stage)) == ("first", 1024)


@pytest.mark.role("CheckRole")
def test_check(stage: Stage) -> None:
    assert status(stage) == FOUND


def test_a_changed_parameter_reaches_live(stage: Stage, tmp_path: Path) -> None:
    deploy(stage, pack(tmp_path, "second", "MemorySize=512"), attested=False)
    assert (last_good(stage), memory(stage)) == ("second", 512)


def test_what_fails_its_check_is_taken_back(stage: Stage, tmp_path: Path) -> None:
    broken = shutil.copytree(BUILD, tmp_path / "build")
    shutil.rmtree(broken / "GetPetFunction/__pycache__")
    (broken / "GetPetFunction/app.py").write_text("handler = None")
    with pytest.raises(DeploymentError, match="runs second again"):
        deploy(stage, pack(tmp_path, "third", build=broken), attested=False)
    assert (last_good(stage), memory(stage)) == ("second", 512)


def test_rollback(stage: Stage) -> None:
    rollback(stage, "first", attested=False)
    assert (last_good(stage), memory(stage)) == ("first", 1024)


@pytest.mark.role("administrator")
def test_drift(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    table, log = find(stage, "AnimalsTable"), find(stage, "GetPetLogGroup")
    boto3.client("dynamodb").update_table(
        TableName=table, DeletionProtectionEnabled=False
    )
    boto3.client("logs").delete_retention_policy(logGroupName=log)
    boto3.client("lambda").update_function_configuration(
        FunctionName=find(stage, "GetPetFunction"), MemorySize=256
    )
    assert status(stage) == FOUND + 3
    printed = capsys.readouterr().out
    for changed in ("AnimalsTable", "GetPetLogGroup", "GetPetFunction"):
        assert f"! {changed} is MODIFIED" in printed


@contextmanager
def writing(stage: Stage) -> Iterator[tuple[Client, list[Pet]]]:
    """Let eight clients add animals, and note those that are acknowledged."""
    created: list[Pet] = []
    ended = Event()
    with (
        Client(stage.deployed()["BaseUrl"], check_key(stage)) as client,
        ThreadPoolExecutor(8) as pool,
    ):

        def write(number: int) -> None:
            while not ended.is_set():
                created.append(client.create(f"animal of {number}", number))

        pool.map(write, range(8))
        try:
            yield client, created
        finally:
            ended.set()


@pytest.mark.role("OperatorRole")
def test_repair_under_writers(stage: Stage) -> None:
    table = boto3.resource("dynamodb").Table(find(stage, "AnimalsTable"))
    with writing(stage) as (client, created):
        # On AWS the latest moment that can be restored is five minutes old.
        time.sleep(400 if IS_ON_AWS else 10)
        moment = datetime.fromtimestamp(int(time.time()) - 350 * IS_ON_AWS, UTC)
        restore.restore(stage, moment)
        table.delete_item(Key={"pk": "pet", "id": created[0].id})
        table.put_item(Item={"pk": "pet", "id": created[1].id, "name": "damaged"})
        restore.restore(stage, moment, apply=True)
        acknowledged = [*created]
        kept = {pet.id: pet.raw for pet in client.pets()}
    assert len({pet.id for pet in acknowledged}) == len(acknowledged)
    assert [pet for pet in acknowledged if kept.get(pet.id) != pet.raw] == []


@pytest.mark.role("administrator")
def test_removal_leaves_the_tables(stage: Stage) -> None:
    tables = [find(stage, name) for name in ("AnimalsTable", "ApiKeysTable")]
    cloudformation = boto3.client("cloudformation")
    with pytest.raises(ClientError, match=r"(?i)protect"):
        cloudformation.delete_stack(StackName=stage.stack)
    cloudformation.update_termination_protection(
        StackName=stage.stack, EnableTerminationProtection=False
    )
    cloudformation.delete_stack(StackName=stage.stack)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=stage.stack)
    assert boto3.client("dynamodb").list_tables()["TableNames"] == sorted(tables)
