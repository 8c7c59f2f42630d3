"""The commands that deploy, check and maintain a stage."""

from pathlib import Path

import typer

from tools.deployment import bootstrap, check_stage, release, restore
from tools.deployment.service import check_contract, temporary_keys
from tools.deployment.stage import DeploymentError, Stage, StageName
from tools.packaging.artifact import Artifact, digest
from tools.packaging.targets import TARGETS

app = typer.Typer()
app.command()(bootstrap.bootstrap)
app.command()(restore.restore)


@app.command()
def deploy(  # noqa: PLR0913 - one argument for each option
    stage: StageName,
    artifact: Path = TARGETS["arm64"].artifact,
    sha256: str = "",
    attested: str = "",
    *,
    canary: bool = True,
    plan: bool = False,
) -> None:
    """Deploy an artifact, check it, and go back if the check fails; or only say what would change.

    It must have the SHA-256, and be built by the pipeline of the repository ATTESTED, if given.
    """
    if sha256 and sha256 != digest(artifact.read_bytes()):
        raise DeploymentError(f"{artifact} does not have the SHA-256 {sha256}")
    with release.opened(artifact) as opened:
        if plan:
            print(release.plan(stage, opened))
        else:
            _deploy(stage, opened, attested, is_rollback=False, canary=canary)


@app.command()
def rollback(
    stage: StageName, commit: str, *, canary: bool = False, attested: str = ""
) -> None:
    """Redeploy an artifact that has passed on the stage; cancel any deployment under way."""
    with release.fetched(stage, commit, "passed") as artifact:
        if stage.status() == "UPDATE_IN_PROGRESS":
            stage.client("cloudformation").cancel_update_stack(StackName=stage.stack)
        _deploy(stage, artifact, attested, is_rollback=True, canary=canary)


def _deploy(
    stage: Stage, artifact: Artifact, attested: str, *, is_rollback: bool, canary: bool
) -> None:
    if attested:
        _verify(stage, artifact, attested)
    stage.wait()
    release.guard(stage, artifact.commit, is_rollback=is_rollback)
    release.deploy_and_check(
        stage,
        artifact,
        lambda: _check(stage, artifact),
        canary=canary,
        is_rollback=is_rollback,
    )
    print(f"{stage.name} runs {release.released(stage)}: {stage.outputs()['BaseUrl']}")


def _verify(stage: Stage, artifact: Artifact, repository: str) -> None:
    """Refuse an artifact that was not built by the repository's pipeline, on main."""
    stage.run("gh", "attestation", "verify", str(artifact.path), "--repo", repository,
        "--signer-workflow", f"{repository}/.github/workflows/deploy.yml",
        "--source-ref", "refs/heads/main", "--source-digest", artifact.commit,
        "--deny-self-hosted-runners")  # fmt: skip


@app.command("check-stage")
def check(stage: StageName) -> None:
    """Compare a stage with what was asked for, and test it (production: reads only)."""
    with release.fetched(stage, release.released(stage)) as artifact:
        _check(stage, artifact)
    if unconfirmed := stage.unconfirmed_subscriptions():
        raise DeploymentError(
            f"alarms do not reach {', '.join(unconfirmed)}: not confirmed yet"
        )


def _check(stage: Stage, artifact: Artifact) -> None:
    check_stage.check(stage, artifact)
    with temporary_keys(stage) as keys:
        read_only = ["-m", "smoke_read_only"] if stage.name == "production" else []
        check_contract(stage, keys, "aws", *read_only)
