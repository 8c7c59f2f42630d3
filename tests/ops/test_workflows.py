"""The order, rights and conditions of the workflows' jobs, each as a literal beside its reason."""

from typing import Any

import pytest
import yaml

from tools import ROOT


def read(workflow: str) -> Any:
    path = ROOT / f".github/workflows/{workflow}.yml"
    return yaml.safe_load(path.read_text("utf-8"))


def named(steps: Any) -> list[str]:
    """Name each step: as it names itself, by its action, or by its command."""
    return [
        step.get("name") or step.get("uses", "").partition("@")[0] or step["run"]
        for step in steps
    ]


CHECKS, DEPLOY, WEEKLY = (read(name) for name in ("checks", "deploy", "weekly"))
STAGE = read("deploy-stage")["jobs"]["deploy"]
ROLLBACK = read("rollback")
STEPS = dict(zip(named(STAGE["steps"]), STAGE["steps"], strict=True))
VERIFIED = """\
echo "$SHA256  animal-store-arm64.zip" | sha256sum --check
gh attestation verify animal-store-arm64.zip --repo "$GITHUB_REPOSITORY" \\
  --signer-workflow "$GITHUB_REPOSITORY/.github/workflows/deploy.yml" \\
  --source-ref refs/heads/main --source-digest "$GITHUB_SHA" --deny-self-hosted-runners
"""
MAIN_ONLY = 'test "$GITHUB_REF" = refs/heads/main'
TO_BECOME_A_ROLE = {"attestations": "read", "contents": "read", "id-token": "write"}


def test_production_comes_after_staging_which_comes_after_all_checks() -> None:
    order = {name: job.get("needs", []) for name, job in DEPLOY["jobs"].items()}
    assert order == {
        "branch": [],
        "checks": "branch",
        "attest": "checks",
        "staging": ["checks", "attest"],
        "production": ["checks", "staging"],
    }


def test_deployment_of_another_branch_fails_instead_of_doing_nothing() -> None:
    assert DEPLOY["jobs"]["branch"]["steps"] == [{"run": MAIN_ONLY}]
    assert [name for name, job in DEPLOY["jobs"].items() if "if" in job] == []
    assert STAGE["steps"][0]["run"].startswith(MAIN_ONLY)


def test_staging_deploys_one_commit_at_a_time_and_production_never_waits() -> None:
    groups = {name: job.get("concurrency") for name, job in DEPLOY["jobs"].items()}
    assert groups == {
        "branch": None,
        "checks": None,
        "attest": None,
        # Its tests would answer for another commit.
        "staging": "deploy-staging",
        # A job that waits for approval would hold up a rollback.
        "production": None,
    }
    assert "concurrency" not in ROLLBACK


def test_only_jobs_that_need_a_right_have_it() -> None:
    for workflow in (CHECKS, DEPLOY, WEEKLY, ROLLBACK):
        assert workflow["permissions"] == {"contents": "read"}
    rights = {name: job.get("permissions") for name, job in DEPLOY["jobs"].items()}
    assert rights == {
        "branch": None,
        "checks": None,
        "attest": {"attestations": "write", "id-token": "write"},
        "staging": TO_BECOME_A_ROLE,
        "production": TO_BECOME_A_ROLE,
    }
    assert ROLLBACK["jobs"]["rollback"]["permissions"] == TO_BECOME_A_ROLE
    assert [job for job in CHECKS["jobs"].values() if "permissions" in job] == []


def test_job_that_deploys_is_in_the_environment_where_it_is_approved() -> None:
    assert STAGE["environment"] == "${{ inputs.stage }}"
    assert STAGE["permissions"] == TO_BECOME_A_ROLE


def test_role_is_taken_after_everything_is_installed_and_verified() -> None:
    assert named(STAGE["steps"]) == [
        "refuse another branch, and a run that would do nothing",
        "actions/checkout",
        "actions/setup-python",
        "install the tools, before the job has a role",
        "actions/download-artifact",
        "verify that deploy.yml built the artifact of this commit, which is on main",
        "aws-actions/configure-aws-credentials",
        "deploy, test, and go back if the tests fail",
        "roll back and test",
    ]
    assert named(WEEKLY["jobs"]["check-stage"]["steps"]) == [
        "actions/checkout",
        "actions/setup-python",
        "install the tools, before the job has a role",
        "aws-actions/configure-aws-credentials",
        '.venv/bin/animal-store check-stage "$STAGE"',
    ]


def test_role_lasts_as_long_as_the_job() -> None:
    role = STEPS["aws-actions/configure-aws-credentials"]["with"]
    assert role["role-duration-seconds"] == STAGE["timeout-minutes"] * 60 == 3600


def test_steps_of_a_deployment_and_of_a_rollback_exclude_each_other() -> None:
    conditions = {name: step["if"] for name, step in STEPS.items() if "if" in step}
    assert conditions == {
        "actions/download-artifact": "inputs.sha256 != ''",
        "verify that deploy.yml built the artifact of this commit, which is on main": (
            "inputs.sha256 != ''"
        ),
        "deploy, test, and go back if the tests fail": "inputs.sha256 != ''",
        "roll back and test": "inputs.rollback-to != ''",
    }
    assert STEPS["roll back and test"]["run"] == (
        '.venv/bin/animal-store rollback "$STAGE" "$COMMIT"'
    )


def test_bytes_that_the_checks_built_are_verified_and_deployed() -> None:
    built = "${{ needs.checks.outputs.sha256 }}"
    assert DEPLOY["jobs"]["staging"]["with"] == {"stage": "staging", "sha256": built}
    assert DEPLOY["jobs"]["production"]["with"] == {
        "stage": "production",
        "sha256": built,
    }
    assert STAGE["steps"][5]["run"] == VERIFIED
    assert STEPS["deploy, test, and go back if the tests fail"]["run"] == (
        '.venv/bin/animal-store deploy "$STAGE" animal-store-arm64.zip'
    )


def test_rollback_by_hand_must_name_stage_and_commit() -> None:
    inputs = ROLLBACK[True]["workflow_dispatch"]["inputs"]  # YAML reads `on` as true
    assert {name: each["required"] for name, each in inputs.items()} == {
        "stage": True,
        "commit": True,
    }


def test_history_is_there_where_git_compares_commits() -> None:
    """Whether a commit is older, the last release's openapi.yaml, and secrets of the past."""
    compares = (
        STEPS["actions/checkout"],
        *(CHECKS["jobs"][name]["steps"][0] for name in ("check", "secrets")),
    )
    assert [step["with"]["fetch-depth"] for step in compares] == [0, 0, 0]


def test_newer_push_cancels_checks_of_a_branch_but_never_of_main() -> None:
    # Or under steady merging no commit would reach staging.
    assert CHECKS["concurrency"] == {
        "group": "checks-${{ github.workflow }}-${{ github.ref }}",
        "cancel-in-progress": "${{ github.ref != 'refs/heads/main' }}",
    }


def test_artifact_outlasts_an_approval() -> None:
    upload = CHECKS["jobs"]["build"]["steps"][-1]
    assert upload["with"]["retention-days"] == 90


def test_both_stages_are_checked_each_week_without_the_right_to_deploy() -> None:
    job = WEEKLY["jobs"]["check-stage"]
    assert job["strategy"]["matrix"] == {"stage": ["staging", "production"]}
    assert job["environment"] == "${{ matrix.stage }}-check"
    assert WEEKLY[True]["schedule"] == [{"cron": "17 4 * * 1"}]


def test_tests_run_in_another_time_zone_and_ask_for_coverage() -> None:
    assert CHECKS["jobs"]["test"]["env"] == {"TZ": "Asia/Kathmandu"}
    makefile = (ROOT / "Makefile").read_text()
    assert '-m "not slow" $(if $(CI),--cov)' in makefile


@pytest.mark.parametrize("workflow", [CHECKS, WEEKLY])
def test_pipe_fails_with_any_of_its_commands(workflow: Any) -> None:
    # GitHub's own shell has no pipefail.
    assert workflow["defaults"]["run"]["shell"] == "bash"
    assert STAGE["defaults"]["run"]["shell"] == "bash"
