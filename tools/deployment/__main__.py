"""Deploy, check and maintain a stage: `python -m tools.deployment COMMAND`; the Makefile has a target for each."""

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from botocore.exceptions import BotoCoreError, ClientError

from tools.deployment import bootstrap, rehearsal, release, restore, sam_local, versions
from tools.deployment.service import DeploymentError, check_contract, run, temporary_keys
from tools.deployment.stage import Stage, StageName, client
from tools.packaging.artifact import digest
from tools.packaging.targets import TARGETS

Attested = Annotated[
    str, typer.Option(help="OWNER/REPOSITORY whose pipeline must have built the artifact.")
]


app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
app.command()(bootstrap.bootstrap)
app.command()(versions.prune)
app.command()(restore.restore)
app.command("cut-over")(restore.cut_over)
app.command("raise-counter")(restore.raise_counter)
app.command()(rehearsal.rehearse)
app.command("sam-local")(sam_local.run)


@app.command()
def deploy(
    stage: StageName,
    artifact: Path = TARGETS["arm64"].artifact,
    sha256: str = "",
    attested: Attested = "",
) -> None:
    """Deploy an artifact, check it, and go back if the check fails."""
    if sha256 and sha256 != digest(artifact.read_bytes()):
        raise DeploymentError(f"{artifact} does not have the SHA-256 {sha256}")
    _promote(stage, artifact, attested, back=False, canary=True)


@app.command()
def rollback(
    stage: StageName, commit: str, *, canary: bool = False, attested: Attested = ""
) -> None:
    """Deploy an artifact again that has passed on the stage, at once; cancels a deployment that is under way."""
    with release.fetched(stage, commit, "passed") as path:
        if stage.status() == "UPDATE_IN_PROGRESS":
            client("cloudformation").cancel_update_stack(StackName=stage.stack)
        _promote(stage, path, attested, back=True, canary=canary)


def _promote(stage: Stage, path: Path, attested: str, *, back: bool, canary: bool) -> None:
    with release.unpacked(path) as artifact:
        commit = artifact.commit
    if attested:  # by the pipeline, on main
        run("gh", "attestation", "verify", str(path), "--repo", attested, "--deny-self-hosted-runners",
            "--signer-workflow", f"{attested}/.github/workflows/deploy.yml", "--source-ref", "refs/heads/main",
            "--source-digest", commit)  # fmt: skip
    stage.wait()
    release.guard(stage, commit, back=back)
    release.promote(stage, path, lambda: _check(stage, path), canary=canary, back=back)
    print(f"{stage.name} runs {release.released(stage)}: {stage.outputs()['BaseUrl']}")


@app.command()
def check(stage: StageName) -> None:
    """Compare what is live with what was asked for, and run the contract suite (production: only what reads)."""
    with release.fetched(stage, release.released(stage)) as path:
        _check(stage, path)


def _check(stage: Stage, path: Path) -> None:
    versions.check(stage, path)
    outputs = stage.outputs()
    with temporary_keys(outputs["ApiKeysTableName"]) as keys:
        only = ["-m", "smoke_read_only"] if stage.name == "production" else []
        check_contract(outputs["BaseUrl"], keys, "aws", *only)


if __name__ == "__main__":
    # As Ctrl-C does: everything that was started is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except (DeploymentError, BotoCoreError, ClientError) as error:
        sys.exit(str(error))
