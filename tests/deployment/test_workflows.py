"""Who deploys, from which branch, after which jobs, and which bytes."""

from typing import Any

import yaml

from tools import ROOT

MAIN = "github.ref == 'refs/heads/main'"
JOBS: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text("utf-8"))["jobs"]
    for path in (ROOT / ".github/workflows").iterdir()
}
DEPLOY = JOBS["deploy"]
STAGE = JOBS["deploy-stage"]["deploy"]


def test_only_main_is_deployed_after_checks_and_production_after_staging() -> None:
    assert {
        name: (job.get("if"), job.get("needs")) for name, job in DEPLOY.items()
    } == {
        "checks": (f"{MAIN} && !inputs.commit", None),
        "attest": (None, "checks"),
        "staging": (None, ["checks", "attest"]),
        "production": (None, ["checks", "staging"]),
        "rollback": (f"{MAIN} && inputs.commit", None),
    }


def test_a_stage_is_deployed_in_its_environment_where_it_is_approved() -> None:
    assert STAGE["environment"] == "${{ inputs.stage }}"
    allowed = [job for job in JOBS["checks"].values() if "permissions" in job]
    assert allowed == []


def test_what_is_deployed_is_what_was_built() -> None:
    for stage in ("staging", "production"):
        given = DEPLOY[stage]["with"]["sha256"]
        assert given == "${{ needs.checks.outputs.sha256 }}"
    deploy = next(
        step for step in STAGE["steps"] if "sha256sum --check" in step.get("run", "")
    )
    assert deploy["env"]["SHA256"] == "${{ inputs.sha256 }}"
