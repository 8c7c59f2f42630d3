"""What the workflows promise in their comments: who builds, who deploys, and with which rights.

That actions are pinned by commit is checked by zizmor (`make check`).
"""

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any
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
OWN = ("animal_store", "lambda_local")
# What decides when and where a job runs, for how long, with which rights, and on what.
DECIDING = (
    "if",
    "needs",
    "environment",
    "concurrency",
    "timeout-minutes",
    "permissions",
    "env",
    "with",
)
# Commands, and the actions that act on our behalf.
COMPARED = ("", "actions/attest", "aws-actions/configure-aws-credentials")


def outline(workflow: dict[Any, Any]) -> dict[str, Any]:
    """Reduce a workflow to what decides, its commands, and whose role they have."""
    jobs = {}
    for name, job in workflow["jobs"].items():
        jobs[name] = {key: job[key] for key in DECIDING if key in job}
        steps = []
        for step in job.get("steps", ()):
            action = step.get("uses", "").partition("@")[0]
            if action in COMPARED:
                kept = ("if", "run", "env", "with")
                steps.append({key: step[key] for key in kept if key in step})
        jobs[name]["steps"] = steps
    return {
        "start": workflow[True],  # YAML reads `on` as a truth value
        "permissions": workflow["permissions"],
        "defaults": workflow.get("defaults"),
        "jobs": jobs,
    }


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_does_this(name: str) -> None:
    expected = yaml.safe_load(Path(__file__).with_name("workflows.yaml").read_text())
    assert WORKFLOWS.keys() == expected.keys()
    assert outline(WORKFLOWS[name]) == expected[name]


def test_tools_that_deploy_come_from_no_cache() -> None:
    assert "cache" not in str(DEPLOY)


@pytest.mark.parametrize(
    ("workflow", "job"), [("checks", "check"), ("weekly", "audit")]
)
@pytest.mark.parametrize(("status", "passes"), [(0, True), (1, False), (2, True)])
def test_findings_of_the_audit_fail_the_job(
    tmp_path: Path, workflow: str, job: str, status: int, passes: bool
) -> None:
    (audit_step,) = [
        step
        for step in WORKFLOWS[workflow]["jobs"][job]["steps"]
        if step.get("name") == "audit"
    ]
    script = audit_step["run"].replace("make .venv/.installed", "")
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
