"""What may be deployed, with which parameters, and what a failed check goes back to."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import boto3
import pytest

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


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """Take the place of every service of AWS."""
    aws = MagicMock()
    monkeypatch.setattr(release, "client", lambda _: aws)
    monkeypatch.setattr(versions, "client", lambda _: aws)
    monkeypatch.setattr(Stage, "account", lambda _: ACCOUNT)
    return aws


@pytest.fixture
def commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Make a history: `older` and `newer` on main, where production runs `newer`, and `beside`."""

    def git(*arguments: str) -> str:
        command = [
            "git",
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@example.com",
            *arguments,
        ]
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
def test_what_production_refuses(
    commits: dict[str, str], commit: str, is_rollback: bool
) -> None:
    with pytest.raises(DeploymentError, match="production"):
        release.guard(PRODUCTION, commits[commit], is_rollback=is_rollback)


def test_an_environment_that_every_branch_may_use_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = '{"deployment_branch_policy": null, "id": 2, "owner": {"id": 1}}'
    monkeypatch.setattr(bootstrap, "run", lambda *_: answer)
    with pytest.raises(DeploymentError, match="only main"):
        bootstrap.identity(PRODUCTION, "octo/animals")


def test_a_deployment_has_every_parameter_of_its_artifact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "template.yaml").write_text(
        "Parameters: {MemorySize: {Default: 1}, AlarmEmail: {Default: ''}}"
    )
    (tmp_path / "samconfig.toml").write_text(
        "production.deploy.parameters.parameter_overrides = ['Stage=production', 'Waf=true']"
    )
    used = {
        "MemorySize": "512",
        "AlarmEmail": "a@example.com",
        "Waf": "false",
        "DomainName": "x",
    }
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
    monkeypatch.setattr(
        release, "install", lambda _, each, **__: ran.append(each.commit)
    )
    monkeypatch.setattr(release, "released", lambda _: ran[-1])
    monkeypatch.setattr(
        release, "fetched", lambda _, name: contextlib.nullcontext(artifact(name))
    )
    return ran


def test_what_passes_its_check_stays_and_can_be_rolled_back_to(
    history: list[str], aws: MagicMock
) -> None:
    release.deploy_and_check(PRODUCTION, artifact("new"), lambda: None, canary=False)

    assert history == ["old", "new"]
    aws.put_object.assert_called_once_with(Bucket="bucket", Key="passed/new")


@pytest.mark.parametrize(
    ("is_rollback", "meanwhile", "expected"),
    [
        (False, [], ["old", "new", "old"]),
        (False, ["another"], ["old", "new", "another"]),
        (True, [], ["old", "new"]),
    ],
)
def test_a_failed_check_goes_back_unless_superseded(
    history: list[str],
    aws: MagicMock,
    is_rollback: bool,
    meanwhile: list[str],
    expected: list[str],
) -> None:
    def fail() -> None:
        history.extend(meanwhile)
        raise DeploymentError("the check fails")

    new = artifact("new")
    with pytest.raises(DeploymentError, match="the check fails"):
        release.deploy_and_check(
            PRODUCTION, new, fail, canary=False, is_rollback=is_rollback
        )
    assert history == expected
    aws.put_object.assert_not_called()


@pytest.mark.parametrize("canary", [True, False])
@pytest.mark.usefixtures("history")
def test_a_canary_sees_requests(monkeypatch: pytest.MonkeyPatch, canary: bool) -> None:
    requests = MagicMock()
    monkeypatch.setattr(release, "requests_meanwhile", requests)
    monkeypatch.setattr(Stage, "outputs", lambda _: {})

    release.deploy_and_check(PRODUCTION, artifact("new"), lambda: None, canary=canary)

    assert requests.called is canary


@pytest.fixture
def sam(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, ...]]:
    """Take the place of the sam command, and keep what it is told to do."""
    commands: list[tuple[str, ...]] = []

    def run(_: str, *command: str, cwd: Path) -> str:
        commands.append((*command, (cwd / "deployed.json").read_text()))
        return (
            "changes: arn:aws:cloudformation:eu-central-1:1:changeSet/samcli/1 created"
        )

    (tmp_path / "template.yaml").write_text(
        "{Globals: {Function: {Environment: {Variables: {}}}}, Outputs: {}}"
    )
    monkeypatch.setattr(release, "run", run)
    monkeypatch.setattr(Stage, "status", lambda _: "UPDATE_COMPLETE")
    monkeypatch.setattr(Stage, "parameters", lambda *_: {})
    monkeypatch.setattr(Stage, "restored_tables", lambda _: {})
    return commands


def test_each_deployment_publishes_versions_of_its_own(
    sam: list[tuple[str, ...]], tmp_path: Path
) -> None:
    release.install(PRODUCTION, artifact("same", tmp_path), canary=True)
    release.install(PRODUCTION, artifact("same", tmp_path), canary=True)

    deployed = [json.loads(command[-1]) for command in sam if command[0] == "deploy"]
    assert deployed[0]["Globals"] != deployed[1]["Globals"]


def test_a_plan_names_the_changes_and_leaves_nothing_behind(
    aws: MagicMock, sam: list[tuple[str, ...]], tmp_path: Path
) -> None:
    change = {"Action": "Modify", "LogicalResourceId": "Api", "Replacement": "True"}
    pages = [{"Changes": [{"ResourceChange": change}]}]
    aws.get_paginator.return_value.paginate.return_value = pages

    assert list(release.plan(PRODUCTION, artifact("new", tmp_path))) == [
        "Modify Api (replaced)"
    ]

    assert "--no-execute-changeset" in sam[-1]
    change_set = "arn:aws:cloudformation:eu-central-1:1:changeSet/samcli/1"
    aws.delete_change_set.assert_called_once_with(
        StackName="animal-store-production", ChangeSetName=change_set
    )


def test_restored_tables_take_the_place_of_the_stacks_own_everywhere() -> None:
    before = {
        "AnimalsTable": {"Type": "AWS::DynamoDB::Table"},
        "name": {"Ref": "AnimalsTable"},
        "arns": [
            {"Fn::GetAtt": ["AnimalsTable", "Arn"]},
            {"Fn::GetAtt": "AnimalsTable.Arn"},
        ],
        "index": {"Fn::Sub": "${AnimalsTable.Arn}/index/by-status of ${AnimalsTable}"},
        "other": {"Ref": "ApiKeysTable"},
    }
    arn = (
        "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/restored"
    )

    assert release.replace_tables(before, {"AnimalsTable": "restored"}) == {
        "AnimalsTable": {"Type": "AWS::DynamoDB::Table"},
        "name": "restored",
        "arns": [{"Fn::Sub": arn}, {"Fn::Sub": arn}],
        "index": {"Fn::Sub": f"{arn}/index/by-status of restored"},
        "other": {"Ref": "ApiKeysTable"},
    }


def test_what_did_not_reach_live_is_named(aws: MagicMock) -> None:
    latest = {"MemorySize": 512, "Timeout": 5}
    live = {"MemorySize": 1769, "Layers": [{"Arn": "layer:1"}], "CodeSha256": "qg=="}
    aws.meta = boto3.client("lambda", region_name="eu-central-1").meta
    aws.get_alias.return_value = {
        "RoutingConfig": {"AdditionalVersionWeights": {"2": 0.1}}
    }
    aws.get_function.side_effect = [
        {"Configuration": latest | {"Layers": live["Layers"]}},
        {"Configuration": live},
    ]
    aws.get_layer_version_by_arn.return_value = {"Content": {"CodeSha256": "uw=="}}

    expected = {"code": "ab", "layer": "cc", "reserved concurrency": "7"}
    assert list(versions.wrong_settings("function", expected)) == [
        "code is aa, not ab",
        "layer is bb, not cc",
        "reserved concurrency is 0, not 7",
        "other versions have a share: {'2': 0.1}",
        "MemorySize is 1769, not 512",
        "Timeout is None, not 5",
    ]


def test_a_stage_is_deployed_without_what_only_tests_need() -> None:
    program = "import sys; sys.modules['pytest'] = None; import tools.cli"
    subprocess.run([sys.executable, "-c", program], check=True)
