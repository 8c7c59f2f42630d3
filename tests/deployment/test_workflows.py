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
    assert "permissions" not in str(JOBS["checks"])


def test_what_is_deployed_is_what_was_built() -> None:
    built = "${{ needs.checks.outputs.sha256 }}"
    assert DEPLOY["staging"]["with"]["sha256"] == built
    assert DEPLOY["production"]["with"]["sha256"] == built
    assert "'SHA256': '${{ inputs.sha256 }}'" in str(STAGE["steps"])
    assert "sha256sum --check" in str(STAGE["steps"])
