"""Deploy an artifact to a stage, by the pipeline and by hand alike."""

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tools import ROOT
from tools.deployment.service import DeploymentError
from tools.deployment.stage import Stage, client
from tools.packaging.artifact import Artifact, unpack

SAM = ROOT / ".tools/sam/bin/sam"
MAIN = "origin/main"
_SIGNER = ".github/workflows/deploy.yml"

Prepare = Callable[[Path, dict[str, str]], None]
"""Changes a packaged template and its parameters in place: what the rehearsal needs."""


def guard(stage: Stage, commit: str, *, back: bool) -> None:
    """Refuse to give production what is not on main, or, unless the way is back, what is older than what it runs."""
    if stage.name != "production":
        return
    if not _is_ancestor(commit, MAIN):
        raise DeploymentError(f"production takes commits of main only, and {commit} is not one ({MAIN}; git fetch?)")
    live = released(stage).partition("-")[0]
    if live and not back and not _is_ancestor(live, commit):
        raise DeploymentError(f"production runs {live}, which is newer than {commit}: to go back, use make rollback")


def _is_ancestor(older: str, newer: str) -> bool:
    command = ["git", "merge-base", "--is-ancestor", older, newer]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True).returncode == 0


def verify_attestation(path: Path, commit: str, repository: str) -> None:
    """Have GitHub's command line verify that the pipeline on main built this file from that commit."""
    command = ["gh", "attestation", "verify", str(path), "--repo", repository, "--deny-self-hosted-runners"]
    command += ["--signer-workflow", f"{repository}/{_SIGNER}", "--source-ref", "refs/heads/main"]
    command += ["--source-digest", commit]
    if subprocess.run(command, check=False).returncode:
        raise DeploymentError(f"{path.name} has no attestation of {repository} for {commit}")


def released(stage: Stage) -> str:
    """Name the artifact that a stage runs: `<commit>-<sha256>`; empty if none."""
    return stage.outputs().get("Artifact", "")


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[Artifact]:
    """Unpack an artifact for as long as the context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        yield unpack(path, Path(folder) / "artifact")


def fetch(stage: Stage, release: str, folder: Path) -> Path:
    """Get an artifact that the stage has run from its bucket, by its name or commit."""
    bucket, s3 = stage.account()["ArtifactBucketName"], client("s3")
    found = s3.list_objects_v2(Bucket=bucket, Prefix=f"releases/{release}").get("Contents", [])
    if len(found) != 1:
        raise DeploymentError(
            f"{stage.name} has run {len(found)} artifacts named {release}*: make releases STAGE={stage.name}"
        )
    path = folder / Path(found[0]["Key"]).name
    s3.download_file(bucket, found[0]["Key"], str(path))
    with unpacked(path) as artifact:
        if path.stem != f"{artifact.commit}-{artifact.sha256}":
            raise DeploymentError(f"s3://{bucket}/{found[0]['Key']} is not what its name says")
    return path


def install(
    stage: Stage, path: Path, *, canary: bool, tables: Mapping[str, str] | None = None, prepare: Prepare | None = None
) -> None:
    """Create or update the stack from an artifact.

    `tables` are used in place of the stack's own, by logical id; if None, those that are in use stay.
    """
    account = stage.account()
    with unpacked(path) as artifact:
        release = f"{artifact.commit}-{artifact.sha256}"
        # Before anything else, so that whatever runs can be deployed again.
        client("s3").upload_file(str(path), account["ArtifactBucketName"], f"releases/{release}.zip")
        parameters = stage.parameters(artifact.folder / "samconfig.toml")
        if not canary:
            parameters["Canary"] = "false"
        template = artifact.folder / "template.yaml"
        content = yaml.safe_load(template.read_text("utf-8"))
        content["Outputs"]["Artifact"] = {"Description": "What runs: commit and SHA-256.", "Value": release}
        content = replace_tables(content, stage.restored_tables() if tables is None else tables)
        template.write_text(json.dumps(content), "utf-8")
        sam(artifact.folder, "package", "--template-file", "template.yaml", "--output-template-file", "packaged.yaml",
             "--s3-bucket", account["ArtifactBucketName"], "--s3-prefix", "code", "--force-upload")  # fmt: skip
        if prepare:
            prepare(artifact.folder / "packaged.yaml", parameters)
        sam(artifact.folder, "deploy", "--template-file", "packaged.yaml", "--config-env", stage.name,
             "--config-file", "samconfig.toml", "--s3-bucket", account["ArtifactBucketName"],
             "--role-arn", account["ExecutionRoleArn"],
             "--parameter-overrides", *(f"{name}={value}" for name, value in parameters.items()))  # fmt: skip
    client("cloudformation").update_termination_protection(StackName=stage.stack, EnableTerminationProtection=True)


def promote(
    stage: Stage, path: Path, check: Callable[[], None], *, canary: bool, prepare: Prepare | None = None
) -> None:
    """Install an artifact and check it; if the check fails, go back to what ran before."""
    before = released(stage)
    install(stage, path, canary=canary, prepare=prepare)
    installed = released(stage)
    try:
        check()
    except DeploymentError as error:
        # Not if somebody else has deployed meanwhile: what they did stays.
        if not before or before == installed or released(stage) != installed:
            raise
        with tempfile.TemporaryDirectory() as folder:
            install(stage, fetch(stage, before, Path(folder)), canary=False, prepare=prepare)
        raise DeploymentError(f"{error}\n{stage.name} runs {before} again") from error


def sam(folder: Path, *arguments: str) -> None:
    """Run the sam command in a folder."""
    environment = os.environ | {"SAM_CLI_TELEMETRY": "0"}
    command = [str(SAM), *arguments, "--no-progressbar"]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise DeploymentError(f"{done.stdout}{done.stderr}\nsam {arguments[0]} failed")


def replace_tables(template: dict[str, Any], tables: Mapping[str, str]) -> dict[str, Any]:
    """Let a template's functions, roles, alarms and outputs use other tables than its own, which stay as they are."""

    def replaced(value: Any) -> Any:
        if isinstance(value, list):
            return [replaced(item) for item in value]
        if isinstance(value, str):
            for table, name in tables.items():
                value = value.replace(f"${{{table}}}", name).replace(f"${{{table}.Arn}}", arn.format(name))
            return value
        if not isinstance(value, dict):
            return value
        for table, name in tables.items():
            if value == {"Ref": table}:
                return name
            if value in ({"Fn::GetAtt": [table, "Arn"]}, {"Fn::GetAtt": f"{table}.Arn"}):
                return {"Fn::Sub": arn.format(name)}
        return {key: replaced(item) for key, item in value.items()}

    arn = "arn:${{AWS::Partition}}:dynamodb:${{AWS::Region}}:${{AWS::AccountId}}:table/{}"
    result: dict[str, Any] = replaced(template)
    return result
