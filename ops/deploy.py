"""Deploy an earlier artifact again, or a new one, and go back if the new one fails its check."""

import json
import os
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import unpack_archive
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import yaml

from ops.stage import SAM, DeploymentError, Stage, StageName
from tools import ROOT

# Replacing or deleting a table would leave the stage with an empty one.
STACK_POLICY = """{"Statement": [
  {"Effect": "Allow", "Principal": "*", "Action": "Update:*", "Resource": "*"},
  {"Effect": "Deny", "Principal": "*", "Action": ["Update:Replace", "Update:Delete"],
    "Resource": ["LogicalResourceId/AnimalsTable", "LogicalResourceId/ApiKeysTable"]}
]}"""
_READ_ONLY = ("-m", "smoke_read_only")


def deploy(stage: StageName, file: Path, *, attested: bool = True) -> None:
    """Deploy an artifact and check it; if it fails, deploy the last one that passed."""
    good, commit = last_good(stage), ZipFile(file).read("COMMIT").decode()
    runs = stage.deployed()["Commit"] if good else commit
    # What was approved late is older than what runs.
    older = ["git", "merge-base", "--is-ancestor", commit, runs]
    if attested and runs != commit and not stage.execute(older, cwd=ROOT).returncode:
        raise DeploymentError(f"{commit} is older than {runs}")
    try:
        _install(stage, file.read_bytes(), attested=attested, canary=True)
    except Exception as error:
        # It is not what runs if nothing was deployed, or somebody has deployed since.
        if commit in {good, runs} or stage.deployed()["Commit"] != commit:
            raise
        _install(stage, _load(stage, good))
        raise DeploymentError(f"{error}\n{stage.name} runs {good} again") from error


def rollback(stage: StageName, commit: str, *, attested: bool = True) -> None:
    """Deploy again at once what the stage ran of COMMIT, and check it."""
    _install(stage, _load(stage, commit), attested=attested)


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
        print(f"::add-mask::{key}")
    return key


def last_good(stage: Stage) -> str:
    """Name the commit that passed its check last; empty if there is none."""
    try:
        return _load(stage, "last-good").decode()
    except stage.client("s3").exceptions.NoSuchKey:
        return ""


def _load(stage: Stage, key: str) -> bytes:
    """Read an artifact, by its commit, or what else is in the bucket."""
    answer = stage.client("s3").get_object(
        Bucket=stage.account()["ArtifactBucketName"], Key=key
    )
    return bytes(answer["Body"].read())


def _ask(stage: Stage, key: str, *arguments: str) -> int:
    """Run the contract suite without this process's credentials; return its exit status."""
    environment = {
        "CONTRACT_BASE_URL": stage.deployed()["BaseUrl"],
        "CONTRACT_API_KEY": key,
        "CONTRACT_EXPECTED_FAILURES": os.environ.get(
            "EXPECTED_FAILURES", "tests/contract/expected_failures/aws.yaml"
        ),
    }
    command = [sys.executable, "-m", "pytest", "tests/contract", *arguments]
    return stage.execute(command, cwd=ROOT, env=environment).returncode


def _install(
    stage: Stage, content: bytes, *, attested: bool = False, canary: bool = False
) -> None:
    """Create or update the stack from an artifact, check it, and remember that it passed."""
    account, s3 = stage.account(), stage.client("s3")
    with TemporaryDirectory() as name:
        file, folder = Path(name, "artifact.zip"), Path(name, "artifact")
        file.write_bytes(content)
        unpack_archive(file, folder)
        commit = (folder / "COMMIT").read_text()
        if attested:
            # Only what the pipeline of the account's repository has built of main.
            repository = account["Repository"]
            stage.run("gh", "attestation", "verify", str(file), "--repo", repository,
                "--signer-workflow", f"{repository}/.github/workflows/deploy.yml",
                "--source-ref", "refs/heads/main", "--source-digest", commit,
                "--deny-self-hosted-runners")  # fmt: skip
        # Before the stack changes, so that whatever runs can be deployed again.
        bucket = account["ArtifactBucketName"]
        s3.put_object(Bucket=bucket, Key=commit, Body=content)
        print("deploying", commit, "(CloudFormation goes on if interrupted)")
        command = _command(stage, account, folder, commit, canary=canary)
        # A canary that nobody calls cannot fail.
        key = check_key(stage) if canary and last_good(stage) else ""
        with ThreadPoolExecutor() as pool:
            sam = pool.submit(stage.execute, command, cwd=folder)
            while key and not sam.done():
                _ask(stage, key, "-qq", "--no-summary", *_READ_ONLY)
    if sam.result().returncode:
        raise DeploymentError(f"sam deploy failed: {stage.state()}")
    client = stage.client("cloudformation")
    client.set_stack_policy(StackName=stage.stack, StackPolicyBody=STACK_POLICY)
    client.update_termination_protection(
        StackName=stage.stack, EnableTerminationProtection=True
    )
    print(commit, "stays, unless this says otherwise: it is checked now")
    check_contract(stage)
    s3.put_object(Bucket=bucket, Key="last-good", Body=commit)


def _command(
    stage: Stage, account: dict[str, str], folder: Path, commit: str, *, canary: bool
) -> list[str]:
    """Mark an unpacked artifact's template, and return the command that deploys it.

    It names every parameter but an account's own, so that a rollback reverts changed ones.
    """
    file = folder / "template.yaml"
    template = yaml.safe_load(file.read_text("utf-8"))
    # Lambda publishes no version of a function that is identical to its newest version: a
    # change that was taken back would fail the next time.
    now = time.strftime("%c %Z")
    template["Globals"]["Function"]["Environment"]["Variables"]["DEPLOYMENT"] = now
    template["Outputs"]["Deployed"] = {"Value": now}
    template["Outputs"]["Commit"] = {"Value": commit}
    file.write_text(json.dumps(template), "utf-8")
    # One whose default is empty is the account's own: it stays, unless it is named below.
    parameters = [
        f'{name}="{parameter["Default"]}"'
        for name, parameter in template["Parameters"].items()
        if parameter.get("Default", "") != ""
    ]
    own = tomllib.loads((folder / "samconfig.toml").read_text("utf-8"))[stage.name]
    parameters += own["deploy"]["parameters"]["parameter_overrides"]
    parameters.append(f"PermissionsBoundary={account['PermissionsBoundaryArn']}")
    if email := os.environ.get("ALARM_EMAIL"):
        parameters.append(f"AlarmEmail={email}")
    if not canary:
        parameters.append("Canary=false")
    return [SAM, "deploy", "--config-env", stage.name,
        "--s3-bucket", account["ArtifactBucketName"], "--role-arn", account["ExecutionRoleArn"],
        "--parameter-overrides", *parameters]  # fmt: skip
