"""What the workflows promise in their comments: who builds, who deploys, and with which rights.

That actions are pinned by commit is checked by zizmor (`make check`).
"""

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import ROOT

WORKFLOWS = {}
for path in (ROOT / ".github/workflows").glob("*.yml"):
    WORKFLOWS[path.stem] = yaml.safe_load(path.read_text())
DEPLOY = WORKFLOWS["deploy-stage"]["jobs"]["deploy"]
OWN = ("animal_store",)
# What decides when and where a job runs, or which workflow, with which rights, and on what.
DECIDING = (
    "if needs environment concurrency permissions env uses with strategy"
    " continue-on-error"
)
# Commands, and the actions that act on our behalf.
COMPARED = ("", "actions/attest", "aws-actions/configure-aws-credentials")


def pick(settings: dict[Any, Any], *names: object) -> dict[Any, Any]:
    return {name: settings[name] for name in names if name in settings}


def outline(workflow: dict[Any, Any]) -> dict[Any, Any]:
    """Reduce a workflow to what decides, its commands, and whose role they have."""
    jobs = {}
    for name, job in workflow["jobs"].items():
        jobs[name] = pick(job, *DECIDING.split())
        for step in job.get("steps", ()):
            if step.get("uses", "").partition("@")[0] in COMPARED:
                kept = pick(step, "if", "run", "env", "with", "continue-on-error")
                jobs[name].setdefault("steps", []).append(kept)
    # YAML reads `on` as a truth value.
    decides = pick(workflow, True, "permissions", "defaults", "concurrency")
    return decides | {"jobs": jobs}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_does_this(name: str) -> None:
    expected = yaml.safe_load(Path(__file__).with_name("workflows.yaml").read_text())
    assert WORKFLOWS.keys() == expected.keys()
    assert outline(WORKFLOWS[name]) == expected[name]


def test_a_job_runs_on_a_machine_of_github_and_not_for_hours() -> None:
    jobs = [job for each in WORKFLOWS.values() for job in each["jobs"].values()]
    own = [job for job in jobs if "uses" not in job]
    assert {job["runs-on"] for job in own} == {"ubuntu-24.04"}
    assert max(job["timeout-minutes"] for job in own) <= 180


def test_tools_that_deploy_come_from_no_cache_and_know_the_history() -> None:
    assert "cache" not in str(DEPLOY)
    assert "'fetch-depth': 0" in str(DEPLOY)  # what is older than what runs can be told


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


def test_a_stage_is_deployed_and_checked_without_a_build(python: str) -> None:
    for command in ("tools deploy --help", "pytest tests/contract --collect-only"):
        subprocess.run([python, "-m", *command.split()], cwd=ROOT, check=True)
