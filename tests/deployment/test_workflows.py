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


INSTALL = {
    "name": "install the tools, by hash, running nothing of theirs",
    "run": "make .venv/.installed .tools/sam/.installed "
    'SYNC="--no-install-package=animal-store-client --no-install-package=lambda-local"',
    "env": {"PIP_ONLY_BINARY": ":all:", "UV_NO_BUILD": "1"},
}
FROM_MAIN = "github.ref == 'refs/heads/main'"


def test_workflows_start_when_they_should() -> None:
    starts = {name: workflow[True] for name, workflow in WORKFLOWS.items()}
    assert {name: set(events) for name, events in starts.items()} == {
        "checks": {"pull_request", "push", "workflow_call"},
        "deploy": {"push", "workflow_dispatch"},
        "deploy-stage": {"workflow_call"},
        "release": {"release"},
        "rollback": {"workflow_dispatch"},
        "weekly": {"schedule", "workflow_dispatch"},
    }
    assert starts["checks"]["pull_request"] is None  # for each branch
    assert starts["checks"]["push"] == {"branches-ignore": ["main"]}
    assert starts["deploy"]["push"] == {"branches": ["main"]}
    assert starts["weekly"]["schedule"] == [{"cron": "17 4 * * 1"}]


def test_jobs_run_in_this_order_and_place_for_so_long() -> None:
    deciding = ("if", "needs", "environment", "concurrency", "timeout-minutes")
    found = {}
    for file, workflow in WORKFLOWS.items():
        for name, job in workflow["jobs"].items():
            found[f"{file}/{name}"] = {key: job[key] for key in deciding if key in job}
    assert found == {
        "checks/build": {"timeout-minutes": 20},
        "checks/check": {"timeout-minutes": 15},
        "checks/rehearse": {"timeout-minutes": 20},
        "checks/sam-local": {"timeout-minutes": 30},
        "checks/test": {"timeout-minutes": 30},
        "checks/test-slow": {"timeout-minutes": 45},
        "deploy/checks": {"if": FROM_MAIN},
        "deploy/attest": {"needs": "checks", "timeout-minutes": 5},
        "deploy/staging": {
            "needs": ["checks", "attest"],
            "concurrency": "deploy-staging",
        },
        "deploy/production": {"needs": ["checks", "staging"]},
        "deploy-stage/deploy": {
            "environment": "${{ inputs.stage }}",
            "timeout-minutes": 60,
        },
        "release/build": {"timeout-minutes": 10},
        "release/attach": {"needs": "build", "timeout-minutes": 10},
        "rollback/rollback": {"if": FROM_MAIN},
        "weekly/audit": {"timeout-minutes": 15},
        "weekly/faults": {"timeout-minutes": 180},
        "weekly/check-stage": {
            "if": FROM_MAIN,
            "environment": "${{ matrix.stage }}-check",
            "timeout-minutes": 30,
        },
    }


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


def test_what_was_built_here_is_attested_and_goes_to_both_stages() -> None:
    deploy = WORKFLOWS["deploy"]["jobs"]
    assert deploy["attest"]["steps"][0]["with"] == {
        "subject-name": "animal-store-arm64.zip",
        "subject-digest": "sha256:${{ needs.checks.outputs.sha256 }}",
    }
    for stage in ("staging", "production"):
        assert deploy[stage]["with"] == {
            "stage": stage,
            "sha256": "${{ needs.checks.outputs.sha256 }}",
            "canary": "${{ github.event_name == 'push' || inputs.canary }}",
        }


def credentials(session: str) -> dict[str, str | int]:
    return {
        "role-to-assume": "${{ vars.AWS_ROLE_ARN }}",
        "aws-region": "${{ vars.AWS_REGION }}",
        "role-session-name": session + "-${{ github.run_id }}",
        "role-duration-seconds": 3600,
    }


def test_a_stage_takes_only_what_is_attested_with_tools_that_run_no_builds() -> None:
    assert "cache" not in str(DEPLOY)
    steps = DEPLOY["steps"]
    assert steps[0]["run"] == 'test -n "$GIVEN"'
    assert steps[3] == INSTALL
    assert steps[5]["with"] == credentials("deploy-${{ inputs.stage }}")
    deploy, roll_back = steps[6:]
    options = "$CANARY --attested $GITHUB_REPOSITORY"
    assert deploy["if"] == "inputs.sha256 != ''"
    assert deploy["run"] == (
        f'make deploy ARTIFACT=animal-store-arm64.zip ARGS="--sha256 $SHA256 {options}"'
    )
    assert roll_back["if"] == "inputs.rollback-to != ''"
    assert roll_back["run"] == f'make rollback ARGS="{options}"'


def test_the_weekly_check_installs_the_same_tools() -> None:
    install, become, check = CHECK["steps"][2:]
    assert install == INSTALL
    assert become["with"] == credentials("check-${{ matrix.stage }}")
    assert check["run"] == "make check-stage"
    assert check["env"]["PYTHONPATH"] == DEPLOY["env"]["PYTHONPATH"]


def commands(workflow: str, job: str) -> list[str]:
    steps = WORKFLOWS[workflow]["jobs"][job]["steps"]
    return [step["run"] for step in steps if "run" in step]


def test_each_change_is_checked_by_these_commands() -> None:
    # With `bash -eo pipefail`: a test that fails is not hidden by `tee`.
    assert WORKFLOWS["checks"]["defaults"] == {"run": {"shell": "bash"}}
    _, check, compare = commands("checks", "check")
    assert check == "make check"
    assert compare.endswith(
        ' breaking "$base:openapi.yaml" openapi.yaml --fail-on ERR\n'
    )
    assert commands("checks", "test") == ['make test PYTHON="$(command -v python)"']
    assert commands("checks", "test-slow")[1] == "make test-slow | tee slow.log"
    assert commands("checks", "rehearse") == ['make rehearse STAGE="$STAGE"']
    assert commands("checks", "sam-local") == ["make sam-contract"]
    assert commands("weekly", "faults") == ["make faults"]


@pytest.mark.parametrize(
    ("workflow", "job"), [("checks", "check"), ("weekly", "audit")]
)
@pytest.mark.parametrize(("status", "passes"), [(0, True), (1, False), (2, True)])
def test_findings_of_the_audit_fail_the_job(
    tmp_path: Path, workflow: str, job: str, status: int, passes: bool
) -> None:
    script = commands(workflow, job)[0].replace("make .venv/.installed", "")
    audit = tmp_path / ".venv/bin/animal-store"
    audit.parent.mkdir(parents=True)
    audit.write_text(f"#!/bin/sh\nexit {status}\n")
    audit.chmod(0o755)
    done = subprocess.run(["bash", "-ec", script], cwd=tmp_path, check=False)
    assert (done.returncode == 0) is passes


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
