"""Deploy an artifact to a stage and check it; roll back if a check fails, or on request."""

import json
import os
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
import yaml

from ops import artifacts, programs
from ops.stage import DeploymentError, Stage, StageName
from tools.packaging.build import build

# A table that is replaced or deleted would leave the stage with an empty one.
STACK_POLICY = {
    "Statement": [
        {"Effect": "Allow", "Principal": "*", "Action": "Update:*", "Resource": "*"},
        {
            "Effect": "Deny",
            "Principal": "*",
            "Action": ["Update:Replace", "Update:Delete"],
            "Resource": [
                "LogicalResourceId/AnimalsTable",
                "LogicalResourceId/ApiKeysTable",
            ],
        },
    ]
}
_READ_ONLY = ("-m", "smoke_read_only")


def deploy(
    stage: StageName,
    file: Annotated[
        Path | None, typer.Argument(help="Without it, the commit is built.")
    ] = None,
    *,
    allow_older: Annotated[
        bool,
        typer.Option("--allow-older", help="Do not ask git which commit is older."),
    ] = False,
) -> None:
    """Deploy an artifact and check it; if it fails, deploy the last one that passed its check."""
    programs.require_sam()
    if file is None:
        file = build()
    content = file.read_bytes()
    with artifacts.unpacked(content) as (folder, commit):
        before, good = stage.commit(), artifacts.last_good(stage)
        # A commit approved late may be older than the one deployed since: refuse it.
        if (
            before not in {"", commit}
            and not allow_older
            and programs.is_ancestor(commit, before)
        ):
            raise DeploymentError(
                f"{commit} is older than {before}, which {stage.name} runs"
            )
        # Stored before the stack changes, so that whatever runs can be deployed again.
        artifacts.store(stage, commit, content)
        fallback = "" if commit in {before, good} else good
        _release(stage, folder, commit, fallback=fallback, canary=True)


def rollback(
    stage: StageName,
    commit: Annotated[str, typer.Argument(help="Its first digits are enough.")] = "",
) -> None:
    """Deploy a stored artifact again at once, and check it; without COMMIT, list what is stored."""
    stored = artifacts.stored(stage, commit)
    if not commit:
        for artifact in stored:
            print(*artifact)
        return
    if len(stored) != 1:
        raise DeploymentError(
            f"{len(stored)} stored artifacts are of a commit that begins with {commit}: "
            f"animal-store rollback {stage.name} lists all"
        )
    commit = stored[0][1]
    with artifacts.unpacked(artifacts.load(stage, commit)) as (folder, _):
        _release(stage, folder, commit)


def check_contract(stage: Stage, folder: Path) -> None:
    """Raise unless a stage passes an artifact's contract suite (production: read-only cases)."""
    selection = _READ_ONLY if stage.name == "production" else ()
    status = programs.run_suite(stage, folder, check_key(stage), "-rfE", *selection)
    if status:
        # https://docs.pytest.org/en/stable/reference/exit-codes.html
        raise DeploymentError(
            f"the contract suite failed (pytest's status {status}): see above"
        )


def check_key(stage: Stage) -> str:
    """Issue a key for a stage; it expires in an hour."""
    expires = int(time.time()) + 3600
    key, _ = stage.keys().issue("check", "test", expires, is_check=True)
    if "GITHUB_ACTIONS" in os.environ:
        print(f"::add-mask::{key}")
    return key


def _release(
    stage: Stage, folder: Path, commit: str, *, fallback: str = "", canary: bool = False
) -> None:
    """Install an unpacked artifact, and note that it is good.

    If it fails while it runs, go back to `fallback`; the last line of the error says what runs.
    """
    try:
        _install(stage, folder, commit, canary=canary)
    except Exception as error:
        lines = [f"{commit} failed: {error}"]
        try:
            # Else nothing was deployed, or somebody has deployed since.
            if fallback and stage.commit() == commit:
                rollback(stage, fallback)
            runs = stage.commit() or "nothing that was deployed so"
            lines.append(f"{stage.name} runs {runs}")
        except Exception as second:
            lines.append(
                f"going back failed: {second}; "
                f"next: animal-store rollback {stage.name} {fallback}"
            )
        raise DeploymentError("\n".join(lines)) from error
    differences = [*stage.misdirected()]
    if stage.commit() != commit:
        differences.append(f"{stage.name} runs {stage.commit()}")
    if differences:
        raise DeploymentError(
            f"{commit} passed its check, but something else runs now, and last-good stays: "
            + "; ".join(differences)
        )
    artifacts.write_last_good(stage, commit)


def _install(stage: Stage, folder: Path, commit: str, *, canary: bool) -> None:
    """Create or update the stack from an unpacked artifact, protect it, and check it."""
    arguments = _mark(stage, folder, commit, canary=canary)
    # A new stack has no canary. It has a commit as soon as `sam` has made it: ask before.
    has_canary = canary and stage.commit()
    print(f"deploying {commit}; CloudFormation goes on if this is interrupted")
    sam = programs.sam(*arguments, folder=folder)
    key = ""
    while has_canary and sam.poll() is None:
        # CodeDeploy judges a version by its requests; nothing that fails here is a judgement.
        with suppress(Exception):
            key = key or check_key(stage)
            programs.run_suite(stage, folder, key, "-qq", "--no-summary", *_READ_ONLY)
        time.sleep(1)
    if sam.wait():
        raise DeploymentError(f"sam deploy failed: {stage.state()}")
    cloudformation = stage.client("cloudformation")
    cloudformation.set_stack_policy(
        StackName=stage.stack, StackPolicyBody=json.dumps(STACK_POLICY)
    )
    cloudformation.update_termination_protection(
        StackName=stage.stack, EnableTerminationProtection=True
    )
    print(f"deployed {commit}; running its contract suite")
    check_contract(stage, folder)


def _mark(stage: Stage, folder: Path, commit: str, *, canary: bool) -> list[str]:
    """Write commit and time into an unpacked artifact's template; return sam's arguments for it.

    They name each parameter for which the artifact has a value, so that a rollback reverts changed
    ones.
    """
    account = stage.account
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
    config = tomllib.loads((folder / "samconfig.toml").read_text("utf-8"))
    parameters += config[stage.name]["deploy"]["parameters"]["parameter_overrides"]
    parameters.append(f"PermissionsBoundary={account['PermissionsBoundaryArn']}")
    if email := os.environ.get("ALARM_EMAIL"):
        parameters.append(f"AlarmEmail={email}")
    if not canary:
        parameters.append("Canary=false")
    return [
        "deploy",
        f"--config-env={stage.name}",
        f"--s3-bucket={account['ArtifactBucketName']}",
        f"--role-arn={account['ExecutionRoleArn']}",
        "--parameter-overrides",
        *parameters,
    ]
