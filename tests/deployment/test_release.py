"""What may be deployed, with which parameters, and what a failed check goes back to."""

import contextlib
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from tools.deployment import check_stage, release
from tools.deployment.stage import DeploymentError, Stage
from tools.packaging.artifact import Artifact

ACCOUNT = {
    "ArtifactBucketName": "bucket",
    "ExecutionRoleArn": "execution",
    "PermissionsBoundaryArn": "boundary",
}
# Two commits on main, and one beside it, each with a tag.
HISTORY = """
git init --quiet --initial-branch main
git config user.name x
git config user.email x@example.com
for name in older newer beside; do
  git commit --quiet --allow-empty --message $name
  git tag $name
done
git reset --quiet --hard newer
"""


AWS = MagicMock()
PRODUCTION = Stage("production", client=lambda _: AWS)


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """Take the place of every service of AWS."""
    AWS.reset_mock()
    monkeypatch.setattr(Stage, "account", lambda _: ACCOUNT)
    return AWS


@pytest.fixture
def commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a history, in which production runs `newer`."""
    subprocess.run(["sh", "-ec", HISTORY], cwd=tmp_path, check=True)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "MAIN", "main")
    monkeypatch.setattr(release, "released", lambda _: "newer-sha256")


@pytest.mark.usefixtures("commits")
def test_what_may_be_deployed() -> None:
    release.guard(PRODUCTION, "newer", is_rollback=False)
    release.guard(PRODUCTION, "older", is_rollback=True)
    release.guard(Stage("staging"), "beside", is_rollback=False)


@pytest.mark.parametrize(
    ("commit", "is_rollback"),
    [("older", False), ("beside", False), ("beside", True), ("newer-dirty", True)],
)
@pytest.mark.usefixtures("commits")
def test_what_production_refuses(commit: str, is_rollback: bool) -> None:
    with pytest.raises(DeploymentError, match="production"):
        release.guard(PRODUCTION, commit, is_rollback=is_rollback)


def test_a_deployment_has_every_parameter_of_its_artifact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "template.yaml").write_text(
        "Parameters: {MemorySize: {Default: 1}, AlarmEmail: {Default: ''}}"
    )
    (tmp_path / "samconfig.toml").write_text(
        "production.deploy.parameters.parameter_overrides = ['Stage=production', 'Waf=true']"
    )
    used = {"MemorySize": "512", "AlarmEmail": "a@example.com", "DomainName": "x"}
    monkeypatch.setattr(Stage, "used_parameters", lambda _: used)
    monkeypatch.delenv("ALARM_EMAIL", raising=False)

    assert PRODUCTION.parameters(tmp_path) == {
        "Stage": "production",
        "MemorySize": "1",
        "Waf": "true",
        "AlarmEmail": "a@example.com",
        "PermissionsBoundary": "boundary",
    }


def artifact(name: str) -> Artifact:
    """Make up an artifact."""
    return Artifact(Path(name), Path(), name, name)


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record what a stage has run; at first it runs `old`."""
    ran = ["old"]

    def install(_: Stage, installed: Artifact, **_options: Any) -> None:
        ran.append(installed.commit)

    def fetched(_: Stage, name: str) -> contextlib.nullcontext[Artifact]:
        return contextlib.nullcontext(artifact(name))

    monkeypatch.setattr(release, "install", install)
    monkeypatch.setattr(release, "fetched", fetched)
    monkeypatch.setattr(release, "released", lambda _: ran[-1])
    return ran


@pytest.mark.parametrize("canary", [True, False])
def test_what_passes_its_check_stays_and_can_be_rolled_back_to(
    history: list[str], aws: MagicMock, monkeypatch: pytest.MonkeyPatch, canary: bool
) -> None:
    requests = MagicMock()
    monkeypatch.setattr(release, "requests_meanwhile", requests)
    monkeypatch.setattr(Stage, "outputs", lambda _: {})

    release.deploy_and_check(PRODUCTION, artifact("new"), lambda: None, canary=canary)

    assert history == ["old", "new"]
    aws.put_object.assert_called_once_with(Bucket="bucket", Key="passed/new")
    assert requests.called is canary


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


def test_a_plan_leaves_nothing_behind_and_each_deployment_differs(
    aws: MagicMock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sam = MagicMock(return_value="created: arn:a:changeSet/samcli/1 .")
    monkeypatch.setattr(Stage, "run", sam)
    monkeypatch.setattr(Stage, "status", lambda _: "UPDATE_COMPLETE")
    monkeypatch.setattr(Stage, "parameters", lambda *_: {})
    same = Artifact(tmp_path, tmp_path, "same", "same")
    (tmp_path / "template.yaml").write_text(
        "{Globals: {Function: {Environment: {Variables: {}}}}, Outputs: {}}"
    )

    release.install(PRODUCTION, same, canary=True)
    first = (tmp_path / "deployed.json").read_text()
    release.plan(PRODUCTION, same)

    assert "--no-execute-changeset" in sam.call_args.args
    aws.delete_change_set.assert_called_once_with(
        StackName=PRODUCTION.stack, ChangeSetName="arn:a:changeSet/samcli/1"
    )
    assert (tmp_path / "deployed.json").read_text() != first


def test_a_plan_makes_no_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stage, "status", lambda _: "")
    with pytest.raises(DeploymentError, match="production has no stack"):
        release.plan(PRODUCTION, artifact("first"))


def test_what_did_not_reach_live_is_named(aws: MagicMock) -> None:
    live = {"MemorySize": 1769, "Layers": [{"Arn": "layer:1"}], "CodeSha256": "qg=="}
    latest = {"MemorySize": 512, "Layers": [{"Arn": "layer:1"}], "Timeout": 5}
    aws.get_function.side_effect = [
        {"Configuration": live},
        {
            "Configuration": latest,
            "Concurrency": {"ReservedConcurrentExecutions": 0},
        },
    ]
    aws.get_layer_version_by_arn.return_value = {"Content": {"CodeSha256": "uw=="}}
    aws.get_alias.return_value = {
        "RoutingConfig": {"AdditionalVersionWeights": {"2": 0.1}}
    }

    assert list(
        check_stage.differences(PRODUCTION, "function", "ab", "cc", reserved=0)
    ) == [
        "the code is not ab",
        "the layer is not cc",
        "other versions have a share: {'2': 0.1}",
        "reserved concurrency is 0, not None",
        "MemorySize is 1769, not 512",
        "Timeout is None, not 5",
    ]
