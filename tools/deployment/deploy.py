"""Deploy an artifact, or an earlier one again, and go back if it fails its check."""

import json
import os
import tomllib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from tools import ROOT
from tools.deployment.contract import READ_ONLY, ask, check_contract, check_key
from tools.deployment.stage import SAM, DeploymentError, Stage, StageName
from tools.packaging.artifact import Artifact, unpack

# Replacing or deleting a table would leave the stage with an empty one.
STACK_POLICY = """{"Statement": [
  {"Effect": "Allow", "Principal": "*", "Action": "Update:*", "Resource": "*"},
  {"Effect": "Deny", "Principal": "*", "Action": ["Update:Replace", "Update:Delete"],
    "Resource": ["LogicalResourceId/AnimalsTable", "LogicalResourceId/ApiKeysTable"]}
]}"""
# Of the account, not of the repository: they stay as they are unless samconfig.toml names them.
_KEPT = {"AlarmEmail", "CertificateArn", "DomainName"}


def deploy(
    stage: StageName, file: Path, *, canary: bool = True, attested: bool = True
) -> None:
    """Deploy an artifact and check it; if it fails, deploy the last one that passed."""
    stage.announce()
    good, commit = last_good(stage), ZipFile(file).read("COMMIT").decode()
    older = ["git", "merge-base", "--is-ancestor", commit, f"{good}^"]
    is_older = stage.execute(older, cwd=ROOT, capture_output=True).returncode == 0
    if is_older and stage.name == "production":  # it was approved late
        raise DeploymentError(f"{good} is newer: to go back to {commit}, make rollback")
    if good:
        stage.wait()
    _install(stage, file.read_bytes(), canary=canary, attested=attested)
    try:
        _check(stage, commit)
    except Exception as error:
        if good in {"", commit} or stage.deployed()["Commit"] != commit:
            raise
        _install(stage, _load(stage, good), canary=False, attested=False)
        raise DeploymentError(f"{error}\n{stage.name} runs {good} again") from error


def rollback(
    stage: StageName, commit: str, *, canary: bool = False, attested: bool = True
) -> None:
    """Deploy again what the stage ran of COMMIT, and check it; first cancel what is under way."""
    stage.announce()
    artifact = _load(stage, commit)
    if stage.describe()["StackStatus"] == "UPDATE_IN_PROGRESS":
        stage.client("cloudformation").cancel_update_stack(StackName=stage.stack)
    stage.wait()
    _install(stage, artifact, canary=canary, attested=attested)
    _check(stage, commit)


def last_good(stage: Stage) -> str:
    """Name the commit that passed its check last; empty if there is none."""
    try:
        return _load(stage, "last-good").decode()
    except DeploymentError:
        return ""


def _load(stage: Stage, key: str) -> bytes:
    """Read an artifact, by its commit, or what else is in the bucket."""
    s3, bucket = stage.client("s3"), stage.account()["ArtifactBucketName"]
    try:
        return bytes(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    except s3.exceptions.NoSuchKey:
        raise DeploymentError(f"no {key} in {bucket}: give all 40 digits") from None


def _store(stage: Stage, key: str, content: bytes) -> None:
    bucket = stage.account()["ArtifactBucketName"]
    stage.client("s3").put_object(Bucket=bucket, Key=key, Body=content)


def _check(stage: Stage, commit: str) -> None:
    """Check what is installed, and remember that it passed."""
    print(commit, "stays, unless this says otherwise: it is checked now")
    check_contract(stage)
    _store(stage, "last-good", commit.encode())
    print(commit, "has passed:", stage.deployed()["BaseUrl"])


def _install(stage: Stage, content: bytes, *, canary: bool, attested: bool) -> None:
    """Create or update the stack from an artifact."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "artifact.zip")
        file.write_bytes(content)
        artifact = unpack(file, Path(folder, "artifact"))
        if attested:
            _verify(stage, artifact)
        # Before the stack changes, so that whatever runs can be deployed again.
        _store(stage, artifact.commit, content)
        print("deploying", artifact.commit, "(CloudFormation goes on if interrupted)")
        command = _command(stage, artifact, canary=canary)
        # A canary that nobody calls cannot fail. The check that follows judges.
        key = check_key(stage) if canary and last_good(stage) else ""
        with ThreadPoolExecutor() as pool:
            deployment = pool.submit(
                stage.execute, command, cwd=artifact.folder, check=True
            )
            while key and not deployment.done():
                ask(stage, key, "-qq", "--tb=no", "--no-summary", *READ_ONLY)
                stage.sleep(20)
            deployment.result()
    name, cloudformation = stage.stack, stage.client("cloudformation")
    cloudformation.set_stack_policy(StackName=name, StackPolicyBody=STACK_POLICY)
    cloudformation.update_termination_protection(
        StackName=name, EnableTerminationProtection=True
    )


def _verify(stage: Stage, artifact: Artifact) -> None:
    """Refuse what the pipeline of the account's repository has not built of main."""
    repository = stage.account()["Repository"]
    workflow = f"{repository}/.github/workflows/deploy.yml"
    stage.run("gh", "attestation", "verify", str(artifact.path), "--repo", repository,
        "--signer-workflow", workflow, "--source-ref", "refs/heads/main", "--source-digest",
        artifact.commit, "--deny-self-hosted-runners")  # fmt: skip


def _command(stage: Stage, artifact: Artifact, *, canary: bool) -> list[str]:
    """Mark an artifact's template, and return the command that deploys it.

    It names every parameter but an account's own, so that a rollback reverts changed ones.
    """
    account, template = stage.account(), artifact.template
    # Lambda publishes no version of a function that is identical to its newest version: a
    # change that was taken back would fail the next time.
    now = datetime.now(UTC).isoformat()
    template["Globals"]["Function"]["Environment"]["Variables"]["DEPLOYMENT"] = now
    template["Outputs"]["Deployed"] = {"Value": now}
    template["Outputs"]["Commit"] = {"Value": artifact.commit}
    (artifact.folder / "template.yaml").write_text(json.dumps(template), "utf-8")
    parameters = []
    for name, parameter in template["Parameters"].items():
        if "Default" in parameter and name not in _KEPT:
            parameters.append(f'{name}="{parameter["Default"]}"')
    config = tomllib.loads((artifact.folder / "samconfig.toml").read_text("utf-8"))
    parameters += config[stage.name]["deploy"]["parameters"]["parameter_overrides"]
    parameters.append(f"PermissionsBoundary={account['PermissionsBoundaryArn']}")
    if email := os.environ.get("ALARM_EMAIL"):
        parameters.append(f"AlarmEmail={email}")
    if not canary:
        parameters.append("Canary=false")
    return [SAM, "deploy", "--template-file", "template.yaml", "--config-env", stage.name,
        "--s3-bucket", account["ArtifactBucketName"], "--role-arn", account["ExecutionRoleArn"],
        "--no-progressbar", "--parameter-overrides", *parameters]  # fmt: skip
