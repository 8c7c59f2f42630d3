"""Steps from an empty account to a deleted stack; each step continues from the previous one.

`make rehearse` runs them on an emulator of AWS, and `make first-flight` in a real account. Most
call the functions behind the commands, in the roles of ops/bootstrap.yaml.
"""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import boto3
import pytest
from animal_store_client import Client
from botocore.exceptions import ClientError

from ops import programs, restore
from ops.artifacts import last_good
from ops.deploy import deploy, issue_check_key, rollback
from ops.stage import Stage, StageError
from ops.status import check_stage
from tests.rehearsal.conftest import IS_ON_AWS, STAGE, remove_stack, tables
from tools import ROOT
from tools.packaging.targets import artifact_path

ARTIFACT = artifact_path("arm64" if IS_ON_AWS else "x86_64")
# No owner's name on GitHub begins with a hyphen, so the roles trust no repository.
REPOSITORY = [
    "Owner=-",
    "OwnerId=0",
    "Repository=-",
    "RepositoryId=0",
    "CreateOidcProvider=false",
]
plain_sam = pytest.mark.skipif(
    STAGE != "staging", reason="a plain `sam deploy` makes staging"
)

# A contract test for a word that only this commit returns.
FEATURE = """
import pytest

@pytest.mark.smoke_read_only
def test_unknown_route_has_the_message_of_this_commit(client):
    message = "The WORD resource could not be found."
    assert client.get("/nowhere").json()["message"] == message
"""
WORD = "requested"


def deploy_as(stage: Stage, folder: Path, commit: str, **changes: str) -> None:
    """Deploy the built artifact as a commit, after replacing texts in its template."""
    shutil.unpack_archive(ARTIFACT, folder)
    (folder / "COMMIT").write_text(commit)
    template = folder / "template.yaml"
    text = template.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    template.write_text(text)
    case = folder / "suite/tests/contract/test_feature.py"
    case.write_text(FEATURE.replace("WORD", changes.get(WORD, WORD)))
    packed_artifact = shutil.make_archive(f"{folder}-packed", "zip", folder)
    deploy(stage, Path(packed_artifact), allow_older=True)


def physical_id(stage: Stage, logical_id: str) -> str:
    """Look up the physical id of a resource of the stack, as the administrator."""
    resource = boto3.client("cloudformation").describe_stack_resource(
        StackName=stage.stack, LogicalResourceId=logical_id
    )
    return str(resource["StackResourceDetail"]["PhysicalResourceId"])


def last_good_and_memory(stage: Stage) -> tuple[str, int]:
    """Return the last good commit and the memory of getPet's `live` version."""
    name = physical_id(stage, "GetPetFunction")
    function = stage.client("lambda").get_function(FunctionName=name, Qualifier="live")
    return last_good(stage), function["Configuration"]["MemorySize"]


@plain_sam
@pytest.mark.role("administrator")
def test_plain_sam_deploy_creates_an_empty_stage(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # sam looks for the functions' Python on PATH.
    monkeypatch.setenv("PATH", f"{ROOT}/.venv/bin", prepend=":")
    assert programs.sam("build", folder=ROOT).wait() == 0
    assert programs.sam("deploy", folder=ROOT).wait() == 0
    with Client(stage.outputs()["BaseUrl"], issue_check_key(stage)) as client:
        assert [*client.pets()] == []


@pytest.mark.role("administrator")
def test_bootstrap_stack_is_created(stage: Stage) -> None:
    sam = programs.sam(
        "deploy",
        "--template-file=ops/bootstrap.yaml",
        f"--stack-name={stage.stack}-bootstrap",
        "--capabilities=CAPABILITY_IAM",
        "--parameter-overrides",
        f"Stage={STAGE}",
        *REPOSITORY,
        folder=ROOT,
    )
    assert sam.wait() == 0


@plain_sam
@pytest.mark.role("administrator")
def test_plain_sam_deploy_fails_on_a_stack_with_a_boundary(stage: Stage) -> None:
    boundary = (
        f"PermissionsBoundary={stage.bootstrap_outputs['PermissionsBoundaryArn']}"
    )
    parameters = ("Stage=staging", "ApiGatewayLoggingRole=false", boundary)
    command = ("deploy", "--parameter-overrides", *parameters)
    assert programs.sam(*command, folder=ROOT).wait() == 0
    assert programs.sam("deploy", folder=ROOT).wait() == 1
    assert stage.state() == "animal-store-staging is UPDATE_COMPLETE"


@plain_sam
def test_broken_template_is_rolled_back(stage: Stage, tmp_path: Path) -> None:
    broken_resource = """
  Broken:
    Type: AWS::Lambda::Url
    Properties: {TargetFunctionArn: no-function, AuthType: AWS_IAM}
Outputs:
"""
    with pytest.raises(StageError, match="is UPDATE_ROLLBACK_COMPLETE"):
        deploy_as(stage, tmp_path, "broken", **{"\nOutputs:\n": broken_resource})
    assert last_good_and_memory(stage) == ("", 1024)


def test_first_commit_is_recorded_as_last_good(stage: Stage, tmp_path: Path) -> None:
    deploy_as(stage, tmp_path, "first")
    assert last_good_and_memory(stage) == ("first", 1024)


def test_second_commit_changes_text_and_memory(stage: Stage, tmp_path: Path) -> None:
    changes = {"Default: 1024": "Default: 512", WORD: "desired"}
    deploy_as(stage, tmp_path, "second", **changes)
    assert last_good_and_memory(stage) == ("second", 512)


def test_commit_that_fails_the_contract_suite_is_rolled_back(
    stage: Stage, tmp_path: Path
) -> None:
    with pytest.raises(StageError, match="the contract suite failed"):
        deploy_as(
            stage, tmp_path, "third", **{"GetPetFunction.zip": "ListPetsFunction.zip"}
        )
    assert last_good_and_memory(stage) == ("second", 512)


def test_rollback_deploys_the_first_commit_again(stage: Stage) -> None:
    rollback(stage, "fir")
    assert last_good_and_memory(stage) == ("first", 1024)


@pytest.mark.role("OperatorRole")
def test_repair_restores_an_animal_under_load(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outputs, dynamodb = stage.outputs(), stage.client("dynamodb")
    table = outputs["AnimalsTableName"]
    copy = f"{table}-copy-1"
    with Client(outputs["BaseUrl"], issue_check_key(stage)) as client:
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
            restore.counter(stage)
            restore.plan(stage, copy)
            restore.apply(stage, Path(copy, "missing.jsonl"))
        assert {damaged, *created} <= {*client.pets()}
    dynamodb.delete_table(TableName=copy)


@pytest.mark.role("CheckRole")
def test_stage_check_finds_at_most_the_unconfirmed_email(stage: Stage) -> None:
    raises_one_problem = pytest.raises(StageError, match=r"^1 problems")
    with raises_one_problem if IS_ON_AWS else nullcontext():
        check_stage(stage)


@pytest.mark.role("administrator")
def test_stage_check_finds_three_changes_made_by_hand(stage: Stage) -> None:
    stage.client("dynamodb").update_table(
        TableName=stage.outputs()["AnimalsTableName"],
        DeletionProtectionEnabled=False,
    )
    stage.client("logs").delete_retention_policy(
        logGroupName=physical_id(stage, "GetPetLogGroup")
    )
    stage.client("lambda").update_function_configuration(
        FunctionName=physical_id(stage, "GetPetFunction"), MemorySize=256
    )
    with pytest.raises(StageError, match=f"^{3 + IS_ON_AWS} problems"):
        check_stage(stage)


@pytest.mark.role("administrator")
def test_stack_is_protected_and_its_tables_outlive_its_removal(stage: Stage) -> None:
    with pytest.raises(ClientError, match=r"(?i)protect"):
        stage.client("cloudformation").delete_stack(StackName=stage.stack)
    remove_stack(stage.stack)
    remove_stack(f"{stage.stack}-bootstrap")
    assert len(tables()) == 2
