"""Deploy an artifact to a stage and run the contract suite; roll back on failure or request."""

import json
import os
import time
import tomllib
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
import yaml

from ops import artifacts, programs
from ops.stage import Stage, StageError, StageName

# CloudFormation must never replace or delete a table, because the table's items would be lost.
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
_READ_ONLY_CASES = ("-m", "smoke_read_only")


def deploy(
    stage: StageName,
    file: Annotated[
        Path, typer.Argument(help="The artifact, from `make build` or the pipeline.")
    ],
    *,
    allow_older: Annotated[
        bool,
        typer.Option("--allow-older", help="Deploy even an older commit."),
    ] = False,
) -> None:
    """Deploy an artifact and run the contract suite on the stage.

    If the artifact or the suite fails, deploy the last artifact that passed the suite.
    """
    running, last_good = stage.commit(), artifacts.last_good(stage)
    commit = zipfile.Path(file, "COMMIT").read_text("utf-8")
    # If a deployment was approved late, a newer commit may have been deployed in the meantime: then
    # refuse the older commit.
    is_new = running not in {"", commit}
    if is_new and not allow_older and programs.is_older(commit, running):
        raise StageError(f"{commit} is older than {running}, which {stage.name} runs")
    # Store the artifact before the stack changes, so that a rollback can redeploy it.
    artifacts.store(stage, commit, file.read_bytes())
    fallback = "" if commit in {running, last_good} else last_good
    _release(stage, commit, fallback=fallback, canary=True)


def rollback(
    stage: StageName,
    commit: Annotated[str, typer.Argument(help="Its first digits are enough.")] = "",
) -> None:
    """Redeploy the stored artifact of COMMIT without a canary, and run the contract suite.

    Without COMMIT, list the stored artifacts.
    """
    stored_artifacts = artifacts.list_stored(stage, commit)
    if not commit:
        for artifact in stored_artifacts:
            print(*artifact)
        return
    if len(stored_artifacts) != 1:
        raise StageError(
            f"{len(stored_artifacts)} stored artifacts have a commit that begins with {commit}; "
            f"to list all: animal-store rollback {stage.name}"
        )
    _release(stage, stored_artifacts[0][1])


def check_contract(stage: Stage, folder: Path) -> None:
    """Run an unpacked artifact's contract suite on a stage; raise StageError if a case fails.

    In production, run only the cases that write nothing.
    """
    selection = _READ_ONLY_CASES if stage.name == "production" else ()
    base_url, api_key = stage.outputs()["BaseUrl"], check_key(stage)
    status = programs.run_suite(folder, base_url, api_key, "-rfE", *selection)
    if status:
        # https://docs.pytest.org/en/stable/reference/exit-codes.html
        raise StageError(
            f"the contract suite failed (pytest's status {status}): see above"
        )


def check_key(stage: Stage) -> str:
    """Issue an API key for the contract suite; the key expires in an hour."""
    expires = int(time.time()) + 3600
    key, _ = stage.keys().issue("check", "test", expires, is_check=True)
    if "GITHUB_ACTIONS" in os.environ:
        print(f"::add-mask::{key}")
    return key


def _release(
    stage: Stage, commit: str, *, fallback: str = "", canary: bool = False
) -> None:
    """Install a stored artifact, and record its commit as `last-good`.

    If the artifact or its contract suite fails, roll back to the commit `fallback`. The last line
    of the error's message names the commit that the stage then runs, or says that the rollback
    failed.
    """
    try:
        with artifacts.unpack(stage, commit) as folder:
            _install(stage, folder, commit, canary=canary)
    except Exception as error:
        message = f"{commit} failed: {error}\n"
        try:
            # Roll back only if the stage runs this commit. If the stage runs another commit, either
            # sam failed, or someone else has deployed since.
            if fallback and stage.commit() == commit:
                _release(stage, fallback)
            message += f"{stage.name} runs {stage.commit() or 'no known commit'}"
        except Exception as rollback_error:
            message += (
                f"the rollback failed: {rollback_error}; "
                f"next: animal-store rollback {stage.name} {fallback}"
            )
        raise StageError(message) from error
    running, misrouted = stage.commit(), [*stage.misrouted_aliases()]
    if running != commit or misrouted:
        now = "; ".join([f"{stage.name} runs {running}", *misrouted])
        raise StageError(
            f"{commit} passed its check, but last-good was not changed: now {now}"
        )
    artifacts.write_last_good(stage, commit)


def _install(stage: Stage, folder: Path, commit: str, *, canary: bool) -> None:
    """Create or update the stack from an unpacked artifact, protect the stack, and test it."""
    arguments = _prepare_deployment(stage, folder, commit, canary=canary)
    # Only an update has a canary. So look for the stage's URL now: if `sam` creates the stack, the
    # stage has no URL yet, and the loop below sends no requests.
    base_url = stage.outputs()["BaseUrl"] if canary and stage.commit() else ""
    print(f"deploying {commit}; CloudFormation continues if this is interrupted")
    sam = programs.sam(*arguments, folder=folder)
    api_key = ""
    while base_url and sam.poll() is None:
        # CodeDeploy judges the new version by its failed requests, so send requests to the stage.
        # The results of this run of the suite do not matter.
        with suppress(Exception):
            api_key = api_key or check_key(stage)
            suite = ("-qq", "--no-summary", *_READ_ONLY_CASES)
            programs.run_suite(folder, base_url, api_key, *suite)
        time.sleep(1)
    if sam.wait():
        raise StageError(f"sam deploy failed: {stage.state()}")
    cloudformation = stage.client("cloudformation")
    cloudformation.set_stack_policy(
        StackName=stage.stack, StackPolicyBody=json.dumps(STACK_POLICY)
    )
    cloudformation.update_termination_protection(
        StackName=stage.stack, EnableTerminationProtection=True
    )
    print(f"deployed {commit}; running its contract suite")
    check_contract(stage, folder)


def _prepare_deployment(
    stage: Stage, folder: Path, commit: str, *, canary: bool
) -> list[str]:
    """Write the commit and time into an unpacked artifact's template; return the arguments for sam.

    The arguments set each parameter for which the artifact has a value, so that a rollback also
    reverts parameters that have changed since.
    """
    account = stage.account
    file = folder / "template.yaml"
    template = yaml.safe_load(file.read_text("utf-8"))
    # Lambda publishes no version that is identical to a function's newest version, even if the
    # newest version was rolled back. The time makes each version different, so that the same commit
    # can be deployed again.
    now = time.strftime("%c %Z")
    template["Globals"]["Function"]["Environment"]["Variables"]["DEPLOYMENT"] = now
    template["Outputs"]["Deployed"] = {"Value": now}
    template["Outputs"]["Commit"] = {"Value": commit}
    file.write_text(json.dumps(template), "utf-8")
    # A parameter with an empty default differs between accounts. Such a parameter keeps its value
    # in the stack unless it is set below.
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
