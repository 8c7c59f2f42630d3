"""Deploy, check and maintain a stage: `python -m tools.deployment COMMAND`; the Makefile has a target for each."""

import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from botocore.exceptions import BotoCoreError, ClientError

from tools.deployment import bootstrap, rehearsal, release, restore, sam_local, versions
from tools.deployment.service import DeploymentError, check_contract, temporary_keys
from tools.deployment.stage import Stage, StageName, client
from tools.packaging.targets import TARGETS

Attested = Annotated[str, typer.Option(help="OWNER/REPOSITORY whose pipeline must have built the artifact.")]


def _print(result: Iterable[str] | None) -> None:
    for line in result or ():
        print(line)


app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__, result_callback=_print)
app.command()(bootstrap.bootstrap)
app.command()(versions.prune)
app.command()(restore.restore)
app.command("cut-over")(restore.cut_over)
app.command("raise-counter")(restore.raise_counter)
app.command()(rehearsal.rehearse)
app.command("sam-local")(sam_local.run)


@app.command()
def deploy(
    stage: StageName, artifact: Path = TARGETS["arm64"].artifact, sha256: str = "", attested: Attested = ""
) -> None:
    """Deploy an artifact, check it, and go back if the check fails."""
    with release.unpacked(artifact) as unpacked:
        if sha256 not in ("", unpacked.sha256):
            raise DeploymentError(f"{artifact} has the SHA-256 {unpacked.sha256}, not {sha256}")
    _promote(stage, artifact, attested, back=False, canary=True)


@app.command()
def rollback(stage: StageName, commit: str, *, canary: bool = False, attested: Attested = "") -> None:
    """Deploy an artifact again that has passed on the stage, at once; cancels a deployment that is under way."""
    with release.fetched(stage, commit, "passed") as path:
        if stage.status() == "UPDATE_IN_PROGRESS":
            client("cloudformation").cancel_update_stack(StackName=stage.stack)
        _promote(stage, path, attested, back=True, canary=canary)


def _promote(stage: Stage, path: Path, attested: str, *, back: bool, canary: bool) -> None:
    with release.unpacked(path) as artifact:
        commit = artifact.commit
    if attested:
        release.verify_attestation(path, commit, attested)
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
