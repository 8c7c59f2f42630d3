"""The steps of a stage's life, from an empty account to a deleted stack, each on top of the last.

`make rehearse` takes them on an emulator of AWS, `make first-flight` in a real account, with the
functions behind the commands and in the roles of ops/bootstrap.yaml.
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

from ops import bootstrap, programs, restore
from ops.artifacts import last_good
from ops.deploy import check_key, deploy, rollback
from ops.stage import DeploymentError, Stage
from ops.status import check_stage
from tests.rehearsal.conftest import IS_ON_AWS, STAGE, remove_stack, tables
from tools import ROOT
from tools.packaging.targets import artifact_of

BUILT = artifact_of("arm64" if IS_ON_AWS else "x86_64")
# No name on GitHub begins with a hyphen: the roles trust nobody's repository.
REPOSITORY = "Owner=- OwnerId=0 Repository=- RepositoryId=0 CreateOidcProvider=false"
plain_sam = pytest.mark.skipif(
    STAGE != "staging", reason="a plain `sam deploy` makes staging"
)

# A contract case that only this commit has, which no other commit's service passes.
FEATURE = """
import pytest

@pytest.mark.smoke_read_only
def test_unknown_route_has_the_message_of_this_commit(client):
    message = "The WORD resource could not be found."
    assert client.get("/nowhere").json()["message"] == message
"""
WORD = "requested"


def ship(stage: Stage, folder: Path, commit: str, **changes: str) -> None:
    """Deploy what was built as a commit, with other texts in its template."""
    shutil.unpack_archive(BUILT, folder)
    (folder / "COMMIT").write_text(commit)
    template = folder / "template.yaml"
    text = template.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    template.write_text(text)
    case = folder / "suite/tests/contract/test_feature.py"
    case.write_text(FEATURE.replace("WORD", changes.get(WORD, WORD)))
    packed = shutil.make_archive(f"{folder}-packed", "zip", folder)
    deploy(stage, Path(packed), allow_older=True)


def find(stage: Stage, logical_id: str) -> str:
    """Name a resource of the stack, as the administrator."""
    resource = boto3.client("cloudformation").describe_stack_resource(
        StackName=stage.stack, LogicalResourceId=logical_id
    )
    return str(resource["StackResourceDetail"]["PhysicalResourceId"])


def runs(stage: Stage) -> tuple[str, int]:
    """Return the last good commit, and the memory of what answers for getPet."""
    name = find(stage, "GetPetFunction")
    answer = stage.client("lambda").get_function(FunctionName=name, Qualifier="live")
    return last_good(stage), answer["Configuration"]["MemorySize"]


@plain_sam
@pytest.mark.role("administrator")
def test_plain_sam_deploy_makes_a_stage_that_answers(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where SAM finds the functions' Python.
    monkeypatch.setenv("PATH", f"{ROOT}/.venv/bin", prepend=":")
    assert programs.sam("build", folder=ROOT).wait() == 0
    assert programs.sam("deploy", folder=ROOT).wait() == 0
    with Client(stage.deployed()["BaseUrl"], check_key(stage)) as client:
        assert [*client.pets()] == []


@pytest.mark.role("administrator")
def test_bootstrap(stage: Stage) -> None:
    bootstrap.create(stage, REPOSITORY.split())


@plain_sam
@pytest.mark.role("administrator")
def test_stack_that_was_handed_over_refuses_a_plain_sam_deploy(stage: Stage) -> None:
    boundary = f"PermissionsBoundary={stage.account['PermissionsBoundaryArn']}"
    parameters = ("Stage=staging", "ApiGatewayLoggingRole=false", boundary)
    command = ("deploy", "--parameter-overrides", *parameters)
    assert programs.sam(*command, folder=ROOT).wait() == 0
    assert programs.sam("deploy", folder=ROOT).wait() == 1
    assert stage.state() == "animal-store-staging is UPDATE_COMPLETE"


@plain_sam
def test_failed_deployment_over_a_plain_stack_goes_back(
    stage: Stage, tmp_path: Path
) -> None:
    broken = """
  Broken:
    Type: AWS::Lambda::Url
    Properties: {TargetFunctionArn: no-function, AuthType: AWS_IAM}
Outputs:
"""
    with pytest.raises(DeploymentError, match="is UPDATE_ROLLBACK_COMPLETE"):
        ship(stage, tmp_path, "broken", **{"\nOutputs:\n": broken})
    assert runs(stage) == ("", 1024)


def test_deploy(stage: Stage, tmp_path: Path) -> None:
    ship(stage, tmp_path, "first")
    assert runs(stage) == ("first", 1024)


def test_feature_and_changed_parameter_reach_live(stage: Stage, tmp_path: Path) -> None:
    changes = {"Default: 1024": "Default: 512", WORD: "desired"}
    ship(stage, tmp_path, "second", **changes)
    assert runs(stage) == ("second", 512)


def test_deployment_that_fails_its_check_is_rolled_back(
    stage: Stage, tmp_path: Path
) -> None:
    with pytest.raises(DeploymentError, match=r"third failed: .*\n.* runs second$"):
        ship(stage, tmp_path, "third", **{"GetPetFunction.zip": "ListPetsFunction.zip"})
    assert runs(stage) == ("second", 512)


def test_rollback_over_a_feature(stage: Stage) -> None:
    rollback(stage, "fir")
    assert runs(stage) == ("first", 1024)


@pytest.mark.role("OperatorRole")
def test_repair_under_writers(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
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
            restore.plan(stage, copy)
            restore.apply(stage, Path(copy, "plan.jsonl"))
        assert {damaged, *created} <= {*client.pets()}
    dynamodb.delete_table(TableName=copy)


@pytest.mark.role("CheckRole")
def test_check_finds_at_most_that_nobody_has_confirmed_the_alarms(stage: Stage) -> None:
    found = pytest.raises(DeploymentError, match=r"^1 things") if IS_ON_AWS else None
    with found or nullcontext():
        check_stage(stage)


@pytest.mark.role("administrator")
def test_check_finds_drift(stage: Stage) -> None:
    stage.client("dynamodb").update_table(
        TableName=stage.deployed()["AnimalsTableName"], DeletionProtectionEnabled=False
    )
    stage.client("logs").delete_retention_policy(
        logGroupName=find(stage, "GetPetLogGroup")
    )
    stage.client("lambda").update_function_configuration(
        FunctionName=find(stage, "GetPetFunction"), MemorySize=256
    )
    with pytest.raises(DeploymentError, match=f"^{3 + IS_ON_AWS} things"):
        check_stage(stage)


@pytest.mark.role("OperatorRole")
def test_operator_throttles_the_stage(stage: Stage) -> None:
    rate = {"op": "replace", "path": "/*/*/throttling/rateLimit", "value": "499"}
    stage.client("apigateway").update_stage(
        restApiId=find(stage, "Api"), stageName=stage.name, patchOperations=[rate]
    )


@pytest.mark.role("administrator")
def test_removal_leaves_the_tables(stage: Stage) -> None:
    with pytest.raises(ClientError, match=r"(?i)protect"):
        stage.client("cloudformation").delete_stack(StackName=stage.stack)
    remove_stack(stage.stack)
    remove_stack(f"{stage.stack}-bootstrap")
    assert len(tables()) == 2
