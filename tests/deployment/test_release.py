"""What may be deployed, with which parameters, and what a failed check goes back to."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import boto3
import pytest
from moto import mock_aws

from tools.deployment import bootstrap, release, versions
from tools.deployment.service import DeploymentError
from tools.deployment.stage import Stage
from tools.packaging.artifact import Artifact

PRODUCTION = Stage("production")
ACCOUNT = {
    "ArtifactBucketName": "bucket",
    "ExecutionRoleArn": "execution",
    "PermissionsBoundaryArn": "boundary",
}


def artifact(name: str, folder: Path = Path()) -> Artifact:
    """Make up an artifact that has been unpacked into a folder."""
    return Artifact(Path(name), folder, name, name)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prepare the account of every stage."""
    monkeypatch.setattr(Stage, "account", lambda _: ACCOUNT)


@pytest.fixture
def commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Make a history: `older` and `newer` on main, where production runs `newer`, and `beside`."""

    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", *arguments]
        return subprocess.check_output(command, cwd=tmp_path, text=True).strip()

    found = {}
    git("init", "--initial-branch", "main")
    for name in ("older", "newer", "beside"):
        git("commit", "--allow-empty", "--message", name)
        found[name] = git("rev-parse", "HEAD")
    git("reset", "--hard", found["newer"])
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "MAIN", "main")
    monkeypatch.setattr(release, "released", lambda _: f"{found['newer']}-sha256")
    return {**found, "changed": f"{found['newer']}-dirty"}


@pytest.mark.parametrize(
    ("stage", "commit", "is_rollback"),
    [
        ("production", "newer", False),
        ("production", "older", True),
        ("staging", "beside", False),
    ],
)
def test_what_may_be_deployed(
    commits: dict[str, str], stage: str, commit: str, is_rollback: bool
) -> None:
    release.guard(Stage(stage), commits[commit], is_rollback=is_rollback)


@pytest.mark.parametrize(
    ("commit", "is_rollback"),
    [("older", False), ("beside", False), ("beside", True), ("changed", True)],
)
def test_what_production_refuses(commits: dict[str, str], commit: str, is_rollback: bool) -> None:
    with pytest.raises(DeploymentError, match="production"):
        release.guard(PRODUCTION, commits[commit], is_rollback=is_rollback)


def test_an_environment_that_every_branch_may_use_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter(['{"deployment_branch_policy": null}'])
    monkeypatch.setattr(bootstrap, "run", lambda *_: next(answers))
    with pytest.raises(DeploymentError, match="only main"):
        bootstrap.identity(PRODUCTION, "octo/animals")


def test_a_protected_environment_is_trusted_by_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(['{"deployment_branch_policy": {"x": 1}}', '{"id": 2, "owner": {"id": 1}}'])
    monkeypatch.setattr(bootstrap, "run", lambda *_: next(answers))
    identity = bootstrap.identity(PRODUCTION, "octo/animals")
    assert identity == ["Owner=octo", "Repository=animals", "OwnerId=1", "RepositoryId=2"]


@pytest.mark.usefixtures("account")
def test_a_deployment_has_every_parameter_of_its_artifact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "template.yaml").write_text(
        "Parameters: {MemorySize: {Default: 1}, AlarmEmail: {Default: ''}}"
    )
    (tmp_path / "samconfig.toml").write_text(
        "production.deploy.parameters.parameter_overrides = ['Stage=production', 'Waf=true']"
    )
    used = {"MemorySize": "512", "AlarmEmail": "a@example.com", "Waf": "false", "DomainName": "x"}
    monkeypatch.setattr(Stage, "used_parameters", lambda _: used)
    monkeypatch.delenv("ALARM_EMAIL", raising=False)

    assert PRODUCTION.parameters(tmp_path) == {
        "Stage": "production",
        "MemorySize": "1",
        "Waf": "true",
        "AlarmEmail": "a@example.com",
        "PermissionsBoundary": "boundary",
    }


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record what a stage has run; at first it runs `old`."""
    ran = ["old"]
    monkeypatch.setattr(release, "install", lambda _, each, **__: ran.append(each.commit))
    monkeypatch.setattr(release, "released", lambda _: ran[-1])
    monkeypatch.setattr(release, "fetched", lambda _, name: contextlib.nullcontext(artifact(name)))
    return ran


@pytest.mark.usefixtures("account")
@mock_aws
def test_what_passes_its_check_stays_and_can_be_rolled_back_to(history: list[str]) -> None:
    s3 = boto3.client("s3", region_name="us-east-1")
    s3.create_bucket(Bucket="bucket")

    release.deploy_and_check(PRODUCTION, artifact("new"), lambda: None, canary=False)

    assert history == ["old", "new"]
    (entry,) = s3.list_objects_v2(Bucket="bucket")["Contents"]
    assert entry["Key"] == "passed/new"


@pytest.mark.parametrize(
    ("is_rollback", "meanwhile", "expected"),
    [
        (False, [], ["old", "new", "old"]),
        (False, ["another"], ["old", "new", "another"]),
        (True, [], ["old", "new"]),
    ],
)
def test_a_failed_check_goes_back_unless_superseded(
    history: list[str], is_rollback: bool, meanwhile: list[str], expected: list[str]
) -> None:
    def fail() -> None:
        history.extend(meanwhile)
        raise DeploymentError("the check fails")

    with pytest.raises(DeploymentError, match="the check fails"):
        release.deploy_and_check(
            PRODUCTION, artifact("new"), fail, canary=False, is_rollback=is_rollback
        )
    assert history == expected


def test_a_canary_sees_requests(history: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def requests(_: object) -> Any:
        history.append("requests begin")
        yield
        history.append("requests end")

    monkeypatch.setattr(Stage, "outputs", lambda _: {})
    monkeypatch.setattr(release, "requests_meanwhile", requests)
    monkeypatch.setattr(release, "client", MagicMock())
    monkeypatch.setattr(Stage, "account", lambda _: ACCOUNT)

    release.deploy_and_check(PRODUCTION, artifact("new"), lambda: None, canary=True)

    assert history == ["old", "requests begin", "new", "requests end"]


@pytest.fixture
def sam(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """Take the place of the sam command, and keep each template that it is to deploy."""
    deployed: list[dict[str, Any]] = []

    def run(_: str, command: str, *__: str, cwd: Path) -> str:
        if command == "deploy":
            deployed.append(json.loads((cwd / "deployed.json").read_text()))
        return "changes: arn:aws:cloudformation:eu-central-1:1:changeSet/samcli/1 created"

    (tmp_path / "template.yaml").write_text(
        "{Globals: {Function: {Environment: {Variables: {}}}}, Outputs: {}}"
    )
    monkeypatch.setattr(release, "run", run)
    monkeypatch.setattr(Stage, "status", lambda _: "UPDATE_COMPLETE")
    monkeypatch.setattr(Stage, "parameters", lambda *_: {})
    monkeypatch.setattr(Stage, "restored_tables", lambda _: {})
    return deployed


@pytest.mark.usefixtures("account")
def test_each_deployment_publishes_a_version_of_its_own(
    sam: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "client", MagicMock())

    release.install(PRODUCTION, artifact("same", tmp_path), canary=True)
    release.install(PRODUCTION, artifact("same", tmp_path), canary=True)

    first, second = (each["Globals"]["Function"]["Environment"]["Variables"] for each in sam)
    assert first != second


@pytest.mark.usefixtures("account", "sam")
def test_a_plan_names_the_changes_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloudformation = MagicMock()
    change = {"Action": "Modify", "LogicalResourceId": "Api", "Replacement": "True"}
    pages = [{"Changes": [{"ResourceChange": change}]}]
    cloudformation.get_paginator.return_value.paginate.return_value = pages
    monkeypatch.setattr(release, "client", lambda _: cloudformation)

    assert list(release.plan(PRODUCTION, artifact("new", tmp_path))) == ["Modify Api (replaced)"]

    change_set = "arn:aws:cloudformation:eu-central-1:1:changeSet/samcli/1"
    cloudformation.delete_change_set.assert_called_once_with(ChangeSetName=change_set)
    cloudformation.execute_change_set.assert_not_called()


def test_restored_tables_take_the_place_of_the_stacks_own_everywhere() -> None:
    before = {
        "AnimalsTable": {"Type": "AWS::DynamoDB::Table"},
        "name": {"Ref": "AnimalsTable"},
        "arns": [{"Fn::GetAtt": ["AnimalsTable", "Arn"]}, {"Fn::GetAtt": "AnimalsTable.Arn"}],
        "index": {"Fn::Sub": "${AnimalsTable.Arn}/index/by-status of ${AnimalsTable}"},
        "other": {"Ref": "ApiKeysTable"},
    }
    arn = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/restored"

    assert release.replace_tables(before, {"AnimalsTable": "restored"}) == {
        "AnimalsTable": {"Type": "AWS::DynamoDB::Table"},
        "name": "restored",
        "arns": [{"Fn::Sub": arn}, {"Fn::Sub": arn}],
        "index": {"Fn::Sub": f"{arn}/index/by-status of restored"},
        "other": {"Ref": "ApiKeysTable"},
    }


def test_what_did_not_reach_live_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = [{"Arn": "layer:1"}]
    latest = {"MemorySize": 512, "Timeout": 5, "Layers": layers, "CodeSha256": "qg=="}
    live = {"MemorySize": 1769, "Layers": layers, "CodeSha256": "qg==", "Description": "v1"}
    functions = MagicMock(meta=boto3.client("lambda", region_name="eu-central-1").meta)
    functions.get_alias.return_value = {"RoutingConfig": {"AdditionalVersionWeights": {"2": 0.1}}}
    functions.get_function.side_effect = [
        {"Configuration": latest, "Concurrency": {"ReservedConcurrentExecutions": 3}},
        {"Configuration": live},
    ]
    functions.get_layer_version_by_arn.return_value = {"Content": {"CodeSha256": "uw=="}}
    monkeypatch.setattr(versions, "client", lambda _: functions)

    expected = {"code": "ab", "layer": "cc", "reserved concurrency": "7"}
    assert list(versions.wrong_settings("function", expected)) == [
        "code is aa, not ab",
        "layer is bb, not cc",
        "reserved concurrency is 3, not 7",
        "other versions have a share: {'2': 0.1}",
        "MemorySize is 1769, not 512",
        "Timeout is None, not 5",
    ]


def test_a_stage_is_deployed_without_what_only_tests_need() -> None:
    program = "import sys; sys.modules['pytest'] = None; import tools.cli"
    subprocess.run([sys.executable, "-c", program], check=True)
