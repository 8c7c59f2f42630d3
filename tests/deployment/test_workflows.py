"""What the workflows promise in their comments: who builds, who deploys, and with which rights."""

import yaml

from tools import ROOT

FOLDER = ROOT / ".github/workflows"
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text()) for path in FOLDER.glob("*.yml")
}
STEPS = [
    step
    for workflow in WORKFLOWS.values()
    for job in workflow["jobs"].values()
    for step in job.get("steps", [])
]
DEPLOY = WORKFLOWS["deploy-stage"]["jobs"]["deploy"]
BECOME_THE_ROLE = {"attestations": "read", "contents": "read", "id-token": "write"}


def runs(word: str) -> list[str]:
    """Return the commands of the deployment's steps that have a word."""
    return [step["run"] for step in DEPLOY["steps"] if word in step.get("run", "")]


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


def test_a_stage_takes_only_what_was_built_and_attested_here() -> None:
    deploy = WORKFLOWS["deploy"]["jobs"]
    assert deploy["attest"]["steps"][0]["with"] == {
        "subject-name": "animal-store-arm64.zip",
        "subject-digest": "sha256:${{ needs.checks.outputs.sha256 }}",
    }
    assert deploy["staging"]["needs"] == ["checks", "attest"]
    assert deploy["production"]["needs"] == ["checks", "staging"]
    for stage in ("staging", "production"):
        given = deploy[stage]["with"]
        assert given == {
            "stage": stage,
            "sha256": "${{ needs.checks.outputs.sha256 }}",
            "canary": "${{ github.event_name == 'push' || inputs.canary }}",
        }
    assert runs("make deploy")
    assert runs("make rollback")
    for command in runs("make deploy") + runs("make rollback"):
        assert "--attested $GITHUB_REPOSITORY" in command
    assert all("--sha256 $SHA256" in command for command in runs("make deploy"))


def test_a_stage_changes_from_main_and_in_its_environment() -> None:
    assert DEPLOY["environment"] == "${{ inputs.stage }}"
    assert (
        WORKFLOWS["weekly"]["jobs"]["check-stage"]["environment"]
        == "${{ matrix.stage }}"
    )
    # YAML 1.1 reads `on` as true.
    assert WORKFLOWS["deploy"][True]["push"] == {"branches": ["main"]}
    of_main = "github.ref == 'refs/heads/main'"
    for workflow, job in (
        ("deploy", "checks"),
        ("rollback", "rollback"),
        ("weekly", "check-stage"),
    ):
        assert WORKFLOWS[workflow]["jobs"][job]["if"] == of_main
    assert all(
        "pull_request_target" not in workflow[True] for workflow in WORKFLOWS.values()
    )


def test_nothing_is_taken_from_a_cache_or_by_a_tag_that_can_be_moved() -> None:
    for step in STEPS:
        action, _, commit = step.get("uses", "").partition("@")
        assert len(commit) == (40 if action else 0), f"{action} is not pinned by commit"
        assert "cache" not in action
        assert not step.get("with", {}).keys() & {"cache", "enable-cache"}, action
    (install,) = [step for step in DEPLOY["steps"] if "install" in step.get("name", "")]
    assert install["env"] == {"PIP_ONLY_BINARY": ":all:", "UV_NO_BUILD": "1"}
