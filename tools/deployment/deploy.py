"""Deploy an artifact, or an earlier one again, and go back if it fails its check."""

import json
import os
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from tools import ROOT
from tools.deployment.stage import SAM, DeploymentError, Stage, StageName
from tools.packaging.artifact import Artifact, unpack

# Replacing or deleting a table would leave the stage with an empty one.
STACK_POLICY = """{"Statement": [
  {"Effect": "Allow", "Principal": "*", "Action": "Update:*", "Resource": "*"},
  {"Effect": "Deny", "Principal": "*", "Action": ["Update:Replace", "Update:Delete"],
    "Resource": ["LogicalResourceId/AnimalsTable", "LogicalResourceId/ApiKeysTable"]}
]}"""
_READ_ONLY = ("-m", "smoke_read_only")


def deploy(
    stage: StageName, file: Path, *, canary: bool = True, attested: bool = True
) -> None:
    """Deploy an artifact and check it; if it fails, deploy the last one that passed."""
    stage.announce()
    good, commit = last_good(stage), ZipFile(file).read("COMMIT").decode()
    older = ["git", "merge-base", "--is-ancestor", commit, f"{good}^"]
    if stage.execute(older, cwd=ROOT, capture_output=True).returncode == 0:
        # It was approved late.
        raise DeploymentError(f"{good} is newer: to go back to {commit}, make rollback")
    if good:
        stage.wait("another deployment", stage.state)
    try:
        _release(stage, file.read_bytes(), canary=canary, attested=attested)
    except Exception as error:
        # It was not deployed, or somebody has deployed since.
        if not good or stage.deployed()["Commit"] != commit:
            raise
        _release(stage, _load(stage, good), canary=False, attested=False)
        raise DeploymentError(f"{error}\n{stage.name} runs {good} again") from error


def rollback(
    stage: StageName, commit: str, *, canary: bool = False, attested: bool = True
) -> None:
    """Deploy again what the stage ran of COMMIT, and check it; first cancel what is under way."""
    stage.announce()
    artifact = _load(stage, commit)
    if stage.describe()["StackStatus"] == "UPDATE_IN_PROGRESS":
        stage.client("cloudformation").cancel_update_stack(StackName=stage.stack)
    stage.wait("another deployment", stage.state)
    _release(stage, artifact, canary=canary, attested=attested)


def check_contract(stage: Stage) -> None:
    """Refuse a stage that does not pass the contract suite (production: its reads)."""
    selected = _READ_ONLY if stage.name == "production" else ()
    if status := _ask(stage, check_key(stage), "-rfE", *selected):
        # https://docs.pytest.org/en/stable/reference/exit-codes.html
        raise DeploymentError(f"the contract suite ended with pytest's status {status}")


def check_key(stage: Stage) -> str:
    """Issue a key of a stage, which expires within an hour."""
    expires = int(time.time()) + 3600
    key, _ = stage.keys().issue("check", "test", expires, is_check=True)
    if "GITHUB_ACTIONS" in os.environ:
        print("::add-mask::", key, sep="")
    return key


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


def _ask(stage: Stage, key: str, *arguments: str) -> int:
    """Run the contract suite without this process's credentials; return its exit status."""
    known = "tests/contract/expected_failures/aws.yaml"
    environment = {
        "CONTRACT_BASE_URL": stage.deployed()["BaseUrl"],
        "CONTRACT_API_KEY": key,
        "CONTRACT_EXPECTED_FAILURES": os.environ.get("EXPECTED_FAILURES", known),
    }
    command = [sys.executable, "-m", "pytest", "tests/contract", *arguments]
    return stage.execute(command, cwd=ROOT, env=environment).returncode


def _release(stage: Stage, content: bytes, *, canary: bool, attested: bool) -> None:
    """Create or update the stack from an artifact, check it, and remember that it passed."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "artifact.zip")
        file.write_bytes(content)
        artifact = unpack(file, Path(folder, "artifact"))
        commit = artifact.commit
        if attested:
            _verify(stage, artifact)
        # Before the stack changes, so that whatever runs can be deployed again.
        _store(stage, commit, content)
        print("deploying", commit, "(CloudFormation goes on if interrupted)")
        command = _command(stage, artifact, canary=canary)
        # A canary that nobody calls cannot fail.
        key = check_key(stage) if canary and last_good(stage) else ""
        with ThreadPoolExecutor() as pool:
            sam = pool.submit(stage.execute, command, cwd=artifact.folder)
            while key and not sam.done():
                _ask(stage, key, "-qq", "--tb=no", "--no-summary", *_READ_ONLY)
    if sam.result().returncode:
        raise DeploymentError(f"sam deploy failed: {stage.state()}")
    stack, cloudformation = {"StackName": stage.stack}, stage.client("cloudformation")
    cloudformation.set_stack_policy(**stack, StackPolicyBody=STACK_POLICY)
    cloudformation.update_termination_protection(
        **stack, EnableTerminationProtection=True
    )
    print(commit, "stays, unless this says otherwise: it is checked now")
    check_contract(stage)
    _store(stage, "last-good", commit.encode())
    print(commit, "has passed:", stage.deployed()["BaseUrl"])


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
        # One whose default is empty is the account's own: it stays, unless it is named below.
        if parameter.get("Default", "") != "":
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
