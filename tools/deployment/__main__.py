"""Deploy, check and maintain a stage: `python -m tools.deployment COMMAND`; the Makefile has a target for each."""

import os
import signal
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from botocore.exceptions import BotoCoreError, ClientError

from tools import ROOT
from tools.deployment import bootstrap as account
from tools.deployment import live, release
from tools.deployment import prune as versions
from tools.deployment import restore as tables
from tools.deployment.service import Deployment, DeploymentError, temporary_keys
from tools.deployment.stage import Stage, client
from tools.packaging.targets import TARGETS

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
StageName = Annotated[Stage, typer.Argument(parser=Stage, metavar="STAGE")]
Attested = Annotated[str, typer.Option(help="OWNER/REPOSITORY whose pipeline must have built the artifact.")]
Table = Annotated[str, typer.Option(help="Its logical id in template.yaml.")]


@app.command()
def bootstrap(
    stage: StageName, repository: str, parameters: Annotated[list[str] | None, typer.Argument()] = None
) -> None:
    """Prepare the account for a stage that OWNER/REPOSITORY deploys; PARAMETERS of bootstrap.yaml as NAME=VALUE."""
    account.create(stage, account.TEMPLATE, account.identity(repository) + (parameters or []))
    print(*(f"{name}: {value}" for name, value in stage.account().items()), sep="\n")


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
    """Deploy an artifact again that the stage has run, at once; cancels a deployment that is under way."""
    with release.fetched(stage, commit) as path:
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
    with release.unpacked(path) as artifact:
        live.check(stage, artifact)
    outputs = stage.outputs()
    with temporary_keys(outputs["ApiKeysTableName"]) as keys:
        only = ["-m", "smoke_read_only"] if stage.name == "production" else []
        Deployment(outputs["BaseUrl"], keys).check_contract("aws", *only)


@app.command()
def prune(stage: StageName, keep: int = 3) -> None:
    """Delete old versions of functions and layer."""
    for name in versions.prune(stage, keep):
        print(f"deleted {name}")


@app.command()
def restore(stage: StageName, table: Table = tables.ANIMALS, at: datetime | None = None) -> None:
    """Restore a table as it was at a moment (UTC) into a new one, and print its name."""
    print(tables.restore(stage, table, at))


@app.command("cut-over")
def cut_over(stage: StageName, name: str, table: Table = tables.ANIMALS, *, carry: bool = True) -> None:
    """Let a stage use a restored table, after carrying over what is newer."""
    tables.cut_over(stage, table, name, carry=carry)


@app.command("raise-counter")
def raise_counter(stage: StageName, value: int) -> None:
    """Let ids go on after VALUE; never sets the counter back."""
    table = stage.outputs()["AnimalsTableName"]
    tables.raise_counter(table, value)
    print(f"the last id given is {tables.counter(table)}")


@app.command()
def rehearse(stage: StageName) -> None:
    """Rehearse all of this on an emulator of AWS (SERVE=1: leave it up)."""
    from tools.deployment.rehearsal import rehearse as run  # what only developers need

    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        run(stage, Path(folder), serve=bool(os.environ.get("SERVE")))


@app.command("sam-local")
def sam_local() -> None:
    """Run the contract suite through `sam local`, in containers (SERVE=1: leave it up; SKIP_PULL=1: fetch no image)."""
    from tools.deployment.sam_local import run

    with tempfile.TemporaryDirectory(prefix="sam-local-") as folder:
        run(Path(folder))


if __name__ == "__main__":
    sys.path.append(str(ROOT / "layers/common"))
    # As Ctrl-C does: everything that was started is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except (DeploymentError, BotoCoreError, ClientError) as error:
        sys.exit(str(error))
