"""Deploy, check and maintain a stage: `python -m tools.deployment COMMAND`; the Makefile has a target for each."""

import os
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from tools import ROOT
from tools.deployment import bootstrap as account
from tools.deployment import housekeeping, live, release
from tools.deployment import restore as tables
from tools.deployment.service import Deployment, DeploymentError, end_on_signals, temporary_keys
from tools.deployment.stage import Stage, client
from tools.packaging.targets import TARGETS

_EXPECTED_FAILURES = ROOT / "tests/contract/expected_failures/aws.yaml"

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
StageArgument = Annotated[Stage, typer.Argument(parser=Stage, metavar="STAGE")]
Attested = Annotated[str, typer.Option(help="OWNER/REPOSITORY whose pipeline must have built the artifact.")]


@app.command()
def bootstrap(stage: StageArgument, repository: Annotated[str, typer.Argument(metavar="OWNER/REPOSITORY")]) -> None:
    """Prepare the account for a stage: roles, permissions boundary, bucket."""
    account.create(stage, account.TEMPLATE, account.subject(repository))
    for name, value in stage.account().items():
        print(f"{name}: {value}")


@app.command()
def deploy(
    stage: StageArgument, artifact: Path = TARGETS["arm64"].artifact, sha256: str = "", attested: Attested = ""
) -> None:
    """Deploy an artifact, check it, and go back if the check fails."""
    _promote(stage, artifact, sha256=sha256, attested=attested, back=False, canary=True)


@app.command()
def rollback(stage: StageArgument, commit: str, *, canary: bool = False, attested: Attested = "") -> None:
    """Deploy an artifact again that the stage has run, at once; cancels a deployment that is under way."""
    if stage.status() == "UPDATE_IN_PROGRESS":
        client("cloudformation").cancel_update_stack(StackName=stage.stack)
    with tempfile.TemporaryDirectory() as folder:
        path = release.fetch(stage, commit, Path(folder))
        _promote(stage, path, sha256="", attested=attested, back=True, canary=canary)


def _promote(stage: Stage, path: Path, *, sha256: str, attested: str, back: bool, canary: bool) -> None:
    with release.unpacked(path) as artifact:
        commit = artifact.commit
        if sha256 and artifact.sha256 != sha256:
            raise DeploymentError(f"{path} has the SHA-256 {artifact.sha256}, not {sha256}")
    if attested:
        release.verify_attestation(path, commit, attested)
    stage.wait()
    release.guard(stage, commit, back=back)
    release.promote(stage, path, lambda: _check(stage, path), canary=canary)
    print(f"{stage.name} runs {release.released(stage)}: {stage.outputs()['BaseUrl']}")


@app.command()
def check(stage: StageArgument) -> None:
    """Compare what is live with what was asked for, and run the contract suite (production: only what reads)."""
    with tempfile.TemporaryDirectory() as folder:
        _check(stage, release.fetch(stage, release.released(stage), Path(folder)))


def _check(stage: Stage, path: Path) -> None:
    with release.unpacked(path) as artifact:
        live.check(stage, artifact)
    outputs = stage.outputs()
    with temporary_keys(outputs["ApiKeysTableName"], os.environ) as keys:
        only = ["-m", "smoke_read_only"] if stage.name == "production" else []
        Deployment(outputs["BaseUrl"], keys).check_contract(_EXPECTED_FAILURES, *only)


@app.command()
def releases(stage: StageArgument) -> None:
    """List the artifacts that a stage has run, the newest last."""
    bucket, running = stage.account()["ArtifactBucketName"], release.released(stage)
    found = client("s3").list_objects_v2(Bucket=bucket, Prefix="releases/").get("Contents", [])
    for entry in sorted(found, key=lambda entry: entry["LastModified"]):
        name = Path(entry["Key"]).stem
        print(f"{entry['LastModified']:%Y-%m-%d %H:%M}  {name}{'  live' if name == running else ''}")


@app.command()
def prune(stage: StageArgument, keep: int = 3) -> None:
    """Delete old versions of functions and layer."""
    for name in housekeeping.prune(stage, keep):
        print(f"deleted {name}")


@app.command("clean-up")
def clean_up(stage: StageArgument) -> None:
    """Delete what a first deployment has left that failed."""
    for name in housekeeping.clean_up(stage):
        print(f"deleted {name}")


@app.command()
def restore(stage: StageArgument, table: str = tables.ANIMALS, at: datetime | None = None) -> None:
    """Restore a table as it was at a moment (UTC) into a new one, and print its name."""
    print(tables.restore(stage, table, at))


@app.command("cut-over")
def cut_over(stage: StageArgument, name: str, table: str = tables.ANIMALS, *, carry: bool = True) -> None:
    """Let a stage use a restored table, after carrying over what is newer."""
    tables.cut_over(stage, table, name, carry=carry)


@app.command("raise-counter")
def raise_counter(stage: StageArgument, value: Annotated[int | None, typer.Argument()] = None) -> None:
    """Let ids go on after a number, or after the greatest in use; never sets the counter back."""
    table = stage.outputs()["AnimalsTableName"]
    tables.raise_counter(table, value)
    print(f"the last id given is {tables.counter(table)}")


@app.command()
def rehearse(stage: StageArgument) -> None:
    """Rehearse all of this on an emulator of AWS (SERVE=1: leave it up)."""
    from tools.deployment import rehearsal  # what only developers need

    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        rehearsal.rehearse(stage, Path(folder), serve=bool(os.environ.get("SERVE")))


if __name__ == "__main__":
    sys.path.append(str(ROOT / "layers/common"))
    end_on_signals()
    try:
        app()
    except DeploymentError as error:
        sys.exit(str(error))
