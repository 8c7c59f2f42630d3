"""The steps of a stage's life, from an empty account to a deleted stack, each on top of the last.

`make rehearse` takes them on an emulator of AWS, `make first-flight` in a real account, with the
functions behind the commands and in the roles of ops/bootstrap.yaml.
"""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from animal_store_client import Client
from botocore.exceptions import ClientError

from ops import bootstrap, restore
from ops.deploy import check_key, deploy, last_good, rollback
from ops.stage import DeploymentError, Stage
from ops.status import status
from tests.rehearsal.conftest import IS_ON_AWS, left, remove_stacks
from tools.packaging.targets import TARGETS

BUILT = TARGETS["arm64" if IS_ON_AWS else "x86_64"].artifact
# No name on GitHub begins with a hyphen: the roles trust nobody's repository.
REPOSITORY = "Owner=- OwnerId=0 Repository=- RepositoryId=0 CreateOidcProvider=false"
# Nobody confirms the subscription; the emulator keeps neither table's backups nor expiry.
FOUND = 1 if IS_ON_AWS else 2


def ship(stage: Stage, folder: Path, commit: str, old: str = "", new: str = "") -> None:
    """Deploy what was built as a commit, with another text in its template."""
    shutil.unpack_archive(BUILT, folder)
    (folder / "COMMIT").write_text(commit)
    template = folder / "template.yaml"
    template.write_text(template.read_text().replace(old, new))
    packed = shutil.make_archive(f"{folder}-packed", "zip", folder)
    deploy(stage, Path(packed), attested=False)


def find(stage: Stage, logical_id: str) -> str:
    """Name a resource of the stack."""
    pages = stage.client("cloudformation").get_paginator("list_stack_resources")
    listed = f"StackResourceSummaries[?LogicalResourceId=='{logical_id}']"
    found = pages.paginate(StackName=stage.stack).search(listed)
    return str(next(found)["PhysicalResourceId"])


def runs(stage: Stage) -> tuple[str, int]:
    """Return the last good commit, and the memory of what answers for getPet."""
    name = find(stage, "GetPetFunction")
    answer = stage.client("lambda").get_function(FunctionName=name, Qualifier="live")
    return last_good(stage), answer["Configuration"]["MemorySize"]


@pytest.mark.role("administrator")
def test_bootstrap(stage: Stage) -> None:
    bootstrap.create(stage, REPOSITORY.split())


def test_deploy(stage: Stage, tmp_path: Path) -> None:
    ship(stage, tmp_path, "first")
    assert runs(stage) == ("first", 1024)


@pytest.mark.role("CheckRole")
def test_check(stage: Stage) -> None:
    assert status(stage) == FOUND


def test_a_changed_parameter_reaches_live(stage: Stage, tmp_path: Path) -> None:
    ship(stage, tmp_path, "second", "Default: 1024", "Default: 512")
    assert runs(stage) == ("second", 512)


def test_what_fails_its_check_is_taken_back(stage: Stage, tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="runs second again"):
        ship(stage, tmp_path, "third", "GetPetFunction.zip", "ListPetsFunction.zip")
    assert runs(stage) == ("second", 512)


def test_rollback(stage: Stage) -> None:
    rollback(stage, "first", attested=False)
    assert runs(stage) == ("first", 1024)


@pytest.mark.role("administrator")
def test_drift(stage: Stage) -> None:
    stage.client("dynamodb").update_table(
        TableName=stage.deployed()["AnimalsTableName"], DeletionProtectionEnabled=False
    )
    stage.client("logs").delete_retention_policy(
        logGroupName=find(stage, "GetPetLogGroup")
    )
    stage.client("lambda").update_function_configuration(
        FunctionName=find(stage, "GetPetFunction"), MemorySize=256
    )
    assert status(stage) == FOUND + 3


@pytest.mark.role("OperatorRole")
def test_repair_under_writers(stage: Stage) -> None:
    dynamodb, table = stage.client("dynamodb"), stage.deployed()["AnimalsTableName"]
    copy = f"{table}-copy-1"
    with Client(stage.deployed()["BaseUrl"], check_key(stage)) as client:
        damaged = client.create("Rex", 12)
        # On AWS the latest moment that can be restored is five minutes old.
        time.sleep(400 * IS_ON_AWS)
        dynamodb.restore_table_to_point_in_time(
            SourceTableName=table,
            TargetTableName=copy,
            UseLatestRestorableTime=True,
        )
        dynamodb.get_waiter("table_exists").wait(
            TableName=copy, WaiterConfig={"MaxAttempts": 180}
        )
        key = {"pk": {"S": "pet"}, "id": {"N": str(damaged.id)}}
        dynamodb.delete_item(TableName=table, Key=key)
        with ThreadPoolExecutor(8) as pool:
            created = pool.map(lambda _: client.create("Mia", 12), range(100))
            restore.restore(stage, copy, apply=True)
        assert {damaged, *created} <= {*client.pets()}


@pytest.mark.role("administrator")
def test_removal_leaves_the_tables(stage: Stage) -> None:
    with pytest.raises(ClientError, match=r"(?i)protect"):
        stage.client("cloudformation").delete_stack(StackName=stage.stack)
    remove_stacks()
    assert len(left("dynamodb", "tables")) == 2
