"""What the workflows promise in their comments: who builds, who deploys, and with which rights.

That actions are pinned by commit is checked by zizmor (`make check`).
"""

import subprocess
import sys
import sysconfig
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import yaml

from tools import ROOT
from tools.deployment import service
from tools.deployment.stage import Stage

WORKFLOWS = {}
for path in (ROOT / ".github/workflows").glob("*.yml"):
    WORKFLOWS[path.stem] = yaml.safe_load(path.read_text())
DEPLOY = WORKFLOWS["deploy-stage"]["jobs"]["deploy"]
CHECK = WORKFLOWS["weekly"]["jobs"]["check-stage"]
OWN = ("animal_store", "lambda_local")
BECOME_THE_ROLE = {"attestations": "read", "contents": "read", "id-token": "write"}


def test_rights_are_only_where_a_role_is_taken_or_an_artifact_attested() -> None:
    given = {}
    for file, workflow in WORKFLOWS.items():
        assert workflow["permissions"] == {"contents": "read"}, file
        for name, job in workflow["jobs"].items():
            if "permissions" in job:
                given[f"{file}/{name}"] = job["permissions"]
    assert given == {
        "deploy/attest": {"attestations": "write", "id-token": "write"},
        "deploy/staging": BECOME_THE_ROLE,
        "deploy/production": BECOME_THE_ROLE,
        "deploy-stage/deploy": BECOME_THE_ROLE,
        "release/attach": {"contents": "write"},
        "rollback/rollback": BECOME_THE_ROLE,
        "weekly/check-stage": {"contents": "read", "id-token": "write"},
    }


def test_what_was_built_here_is_attested_and_goes_to_one_stage_after_the_other() -> (
    None
):
    deploy = WORKFLOWS["deploy"]["jobs"]
    assert deploy["attest"]["steps"][0]["with"] == {
        "subject-name": "animal-store-arm64.zip",
        "subject-digest": "sha256:${{ needs.checks.outputs.sha256 }}",
    }
    assert deploy["staging"]["needs"] == ["checks", "attest"]
    assert deploy["production"]["needs"] == ["checks", "staging"]
    for stage in ("staging", "production"):
        assert deploy[stage]["with"] == {
            "stage": stage,
            "sha256": "${{ needs.checks.outputs.sha256 }}",
            "canary": "${{ github.event_name == 'push' || inputs.canary }}",
        }


def test_a_stage_takes_only_what_is_attested() -> None:
    deploy, rollback = DEPLOY["steps"][-2:]
    options = "--sha256 $SHA256 $CANARY --attested $GITHUB_REPOSITORY"
    assert (
        deploy["run"] == f'make deploy ARTIFACT=animal-store-arm64.zip ARGS="{options}"'
    )
    assert (
        rollback["run"] == 'make rollback ARGS="$CANARY --attested $GITHUB_REPOSITORY"'
    )


def test_tools_that_deploy_come_from_no_cache_and_run_no_builds() -> None:
    assert "cache" not in str(DEPLOY)
    install = DEPLOY["steps"][3]
    assert install["env"] == {"PIP_ONLY_BINARY": ":all:", "UV_NO_BUILD": "1"}


@pytest.mark.parametrize(
    ("workflow", "job"),
    [("deploy", "checks"), ("rollback", "rollback"), ("weekly", "check-stage")],
)
def test_a_stage_changes_from_main(workflow: str, job: str) -> None:
    assert WORKFLOWS[workflow]["jobs"][job]["if"] == "github.ref == 'refs/heads/main'"


def test_a_stage_changes_in_its_environment() -> None:
    assert DEPLOY["environment"] == "${{ inputs.stage }}"
    assert CHECK["environment"] == "${{ matrix.stage }}"


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make an interpreter with what a workflow installs: none of this repository's packages."""
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(OWN):
            (tmp_path / path.name).symlink_to(path)
    monkeypatch.setenv("PYTHONPATH", f"{DEPLOY['env']['PYTHONPATH']}:{tmp_path}")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    return str(python)


@pytest.mark.parametrize("command", ["check-stage", "deploy", "rollback"])
def test_a_stage_is_deployed_and_checked_without_a_build(
    python: str, command: str
) -> None:
    subprocess.run([python, "-m", "tools", command, "--help"], cwd=ROOT, check=True)


def test_a_check_runs_the_contract_suite_without_a_build(
    python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    outputs = [{"OutputKey": "BaseUrl", "OutputValue": "https://a/v1"}]
    aws = MagicMock()
    aws.describe_stacks.return_value = {"Stacks": [{"Outputs": outputs}]}
    stage = Stage("staging", client=lambda _: aws)
    service.check_contract(stage, ["", ""], "aws", "--collect-only")


def test_both_workflows_find_the_same_packages() -> None:
    assert CHECK["steps"][-1]["env"]["PYTHONPATH"] == DEPLOY["env"]["PYTHONPATH"]
