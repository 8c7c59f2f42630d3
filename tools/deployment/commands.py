"""The commands that deploy, check and maintain a stage."""

import sys
from pathlib import Path

import typer

from tools.deployment import bootstrap, check_stage, release, restore, status
from tools.deployment.service import check_contract, temporary_key
from tools.deployment.stage import DeploymentError, Stage, StageName
from tools.packaging.artifact import Artifact, digest
from tools.packaging.targets import TARGETS

app = typer.Typer()
app.command()(bootstrap.bootstrap)
app.command()(status.status)
app.command()(restore.restore)


@app.command()
def deploy(  # noqa: PLR0913 - one argument for each option
    stage: StageName,
    artifact: Path | None = None,
    sha256: str = "",
    attested: str = "",
    *,
    canary: bool = True,
    plan: bool = False,
) -> None:
    """Deploy an artifact, check it, and go back if the check fails; or only say what would change.

    Without one, the commit is built. It must have the SHA-256, and be built by the pipeline of the
    repository ATTESTED, if given.
    """
    stage.announce()
    stage.account()  # a wrong profile is refused before anything is built
    if not artifact:
        print(stage.run(sys.executable, "-m", "tools", "build", "arm64"))
        artifact = TARGETS["arm64"].artifact
    if sha256 and sha256 != digest(artifact.read_bytes()):
        raise DeploymentError(f"{artifact} does not have the SHA-256 {sha256}")
    with release.opened(artifact) as opened:
        _verify(stage, opened, attested)
        if plan:
            print(release.plan(stage, opened))
            return
        stage.wait()
        release.guard(stage, opened.commit, is_rollback=False)
        _install(stage, opened, canary=canary)


@app.command()
def rollback(
    stage: StageName, commit: str, *, canary: bool = False, attested: str = ""
) -> None:
    """Redeploy an artifact that has passed on the stage; cancel any deployment under way."""
    stage.announce()
    with release.fetched(stage, commit, "passed") as artifact:
        # Refused before anything is cancelled.
        _verify(stage, artifact, attested)
        release.guard(stage, artifact.commit, is_rollback=True)
        stage.cancel()
        stage.wait()
        _install(stage, artifact, canary=canary)


def _install(stage: Stage, artifact: Artifact, *, canary: bool) -> None:
    try:
        release.deploy_and_check(stage, artifact, _check, canary=canary)
    except KeyboardInterrupt:
        print(
            "Interrupted; the check had not passed. If CloudFormation was changing the stack, it "
            f"continues: make status STAGE={stage.name}"
        )
        raise


def _verify(stage: Stage, artifact: Artifact, repository: str) -> None:
    """Refuse an artifact that was not built by a repository's pipeline on main, if one is given."""
    if not repository:
        return
    stage.run("gh", "attestation", "verify", str(artifact.path), "--repo", repository,
        "--signer-workflow", f"{repository}/.github/workflows/deploy.yml",
        "--source-ref", "refs/heads/main", "--source-digest", artifact.commit,
        "--deny-self-hosted-runners")  # fmt: skip


@app.command("check-stage")
def check(stage: StageName) -> None:
    """Compare a stage with what was asked for, and test it (production: reads only)."""
    stage.announce()
    stage.deployed()
    with release.fetched(stage, release.released(stage)) as artifact:
        lapses = [*check_stage.lapses(stage)]
        for lapse in lapses:  # now, because the suite may fail
            print(lapse, flush=True)
        _check(stage, artifact)
    if lapses:
        raise DeploymentError(
            f"{len(lapses)} things of {stage.name} have lapsed: see above"
        )


def _check(stage: Stage, artifact: Artifact) -> None:
    check_stage.check(stage, artifact)
    with temporary_key(stage) as key:
        read_only = ["-m", "smoke_read_only"] if stage.name == "production" else []
        check_contract(stage, key, "aws", *read_only)
