"""After which jobs a stage is deployed, where it is approved, and which bytes it gets."""

from typing import Any

import pytest
import yaml

from tools import ROOT


def read(workflow: str) -> Any:
    path = ROOT / f".github/workflows/{workflow}.yml"
    return yaml.safe_load(path.read_text("utf-8"))


DEPLOY, STAGE = read("deploy")["jobs"], read("deploy-stage")["jobs"]["deploy"]


def test_production_comes_after_staging_which_comes_after_the_checks() -> None:
    assert DEPLOY["staging"]["needs"] == ["checks", "attest"]
    assert DEPLOY["production"]["needs"] == ["checks", "staging"]


def test_only_a_job_in_the_environment_where_it_is_approved_has_rights() -> None:
    assert STAGE["environment"] == "${{ inputs.stage }}"
    assert "permissions" not in str(read("checks")["jobs"])


def test_what_is_deployed_is_what_was_built() -> None:
    built = "${{ needs.checks.outputs.sha256 }}"
    assert DEPLOY["staging"]["with"]["sha256"] == built
    assert DEPLOY["production"]["with"]["sha256"] == built
    assert "'SHA256': '${{ inputs.sha256 }}'" in str(STAGE["steps"])
    assert "sha256sum --check" in str(STAGE["steps"])
    # Or no commit is older than another.
    assert "'fetch-depth': 0" in str(STAGE["steps"])


@pytest.mark.parametrize("workflow", ["checks", "weekly"])
def test_a_pipe_fails_with_any_of_its_commands(workflow: str) -> None:
    # GitHub's own shell has no pipefail.
    assert read(workflow)["defaults"]["run"]["shell"] == "bash"
