"""Deploy an artifact to a stage and run the contract suite; roll back if it fails, or on demand."""

import json
import os
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen
from typing import Annotated

import typer
import yaml

from ops import artifacts, programs
from ops.stage import Stage, StageArgument, StageError

# CloudFormation must never replace or delete a table: the service would have an empty one or none.
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
    stage: StageArgument,
    file: Path,
    *,
    allow_older: bool = False,
) -> None:
    """Deploy an artifact and run the contract suite on the stage.

    If the suite fails, go back to last-good, if that is another commit. FILE is the artifact, from
    `make build` or the pipeline. With --allow-older, it may be older than the deployed one.
    """
    commit, content = artifacts.read(file)
    running = stage.commit()
    # Refuse an older commit: if its deployment was approved late, a newer commit may have been
    # deployed in the meantime.
    if running and not allow_older and programs.is_older(commit, running):
        raise StageError(f"{commit} is older than {running}, which {stage.name} runs")
    # Store the artifact before the stack changes, so that a rollback can redeploy it.
    artifacts.store(stage, commit, content)
    # A stack without a known commit is probably new, and has no traffic: no canary could be judged.
    _release(stage, commit, canary=running != "")


def rollback(
    stage: StageArgument,
    commit: Annotated[str, typer.Argument(help="Its first digits are enough.")] = "",
) -> None:
    """Redeploy the stored artifact of COMMIT without a canary, and run the contract suite.

    Without COMMIT, list the stored artifacts.
    """
    stored_artifacts = artifacts.list_stored(stage, commit)
    if not commit:
        for stored_at, stored_commit in stored_artifacts:
            print(f"{stored_at:%Y-%m-%d %H:%M} UTC {stored_commit}")
        return
    if len(stored_artifacts) != 1:
        raise StageError(
            f"{len(stored_artifacts)} stored artifacts have a commit that begins with {commit}; "
            f"to list all: animal-store rollback {stage.name}"
        )
    # `last-good` may name the commit that somebody is rolling back from. Empty it, so that this
    # rollback does not return to that commit if it fails.
    artifacts.write_last_good(stage, "")
    _release(stage, stored_artifacts[0][1])


def check_contract(stage: Stage, folder: Path) -> None:
    """Run an unpacked artifact's contract suite on a stage; raise StageError if a case fails.

    In production, run only the cases that write nothing.
    """
    selection = _READ_ONLY_CASES if stage.name == "production" else ()
    base_url, api_key = stage.outputs()["BaseUrl"], issue_check_key(stage)
    status = programs.run_suite(folder, base_url, api_key, "-rfE", *selection)
    if status:
        # https://docs.pytest.org/en/stable/reference/exit-codes.html
        raise StageError(
            f"the contract suite failed (pytest's status {status}): see above"
        )
    if selection:
        print("in production, no animal was added; only the check of staging adds some")


def issue_check_key(stage: Stage) -> str:
    """Issue an API key for the contract suite; the key expires in an hour."""
    expires = int(time.time()) + 3600
    key, _ = stage.keys().issue("check", "test", expires, is_check=True)
    if "GITHUB_ACTIONS" in os.environ:
        print(f"::add-mask::{key}")
    return key


def report(stage: Stage, check: Callable[[Stage], Iterator[str]]) -> int:
    """Print the problems that a check yields; return their number."""
    problems = 0
    try:
        for line in check(stage):
            problems += 1
            print("!", line)
    except Exception as error:
        problems += 1
        print("!", check.__name__.strip("_"), "cannot be checked:", error)
    return problems


def what_runs(stage: Stage) -> Iterator[str]:
    """Print a stage's state and commit; yield advice if one of them is not as it should be."""
    state = stage.state()
    if "; next: " in state:
        yield state
    else:
        print(state)
    running = stage.commit()
    print(f"{stage.name} runs {running or 'no known commit'}")
    last_good = artifacts.last_good(stage)
    if running != last_good:
        yield (
            f"it may not have passed its check: last-good is {last_good or 'empty'}; next, to "
            f"check it again or to go back: animal-store rollback {stage.name} COMMIT"
        )


def _release(stage: Stage, commit: str, *, canary: bool = False) -> None:
    """Install a stored artifact, and record its commit as `last-good`.

    If the contract suite fails, go back to `last-good`, if that is another commit. In the end, and
    after an interruption, print what the stage runs.
    """
    try:
        try:
            _install(stage, commit, canary=canary)
        except Exception as error:
            print(f"{commit} failed: {error}")
            last_good = artifacts.last_good(stage)
            # If another commit runs, leave it: `commit` isn't deployed (yet), the stack rolled
            # itself back, or someone has deployed since.
            if last_good not in {"", commit} and stage.commit() == commit:
                print(f"going back to {last_good}")
                _install(stage, last_good)
            raise
        if stage.commit() != commit or any(stage.misrouted_aliases()):
            raise StageError(
                f"{commit} passed its check, but since then, someone has changed what runs, so "
                f"last-good stays as it was; next: animal-store status {stage.name}"
            )
        artifacts.write_last_good(stage, commit)
    finally:
        # Report after an interruption, too. GitHub interrupts a job that is cancelled, and
        # terminates it seven seconds later: time enough for a report.
        report(stage, what_runs)


def _install(stage: Stage, commit: str, *, canary: bool = False) -> None:
    """Create or update the stack from a stored artifact, protect the stack, and test it."""
    with artifacts.unpack(stage, commit) as folder:
        arguments = _prepare_deployment(stage, folder, commit, canary=canary)
        print(
            f"deploying {commit}; if this is interrupted, CloudFormation may go on, and nothing "
            f"checks the commit; to see what runs: animal-store status {stage.name}"
        )
        # If _send_requests raises an error, `with` still waits for sam before the deployment fails.
        with programs.sam(*arguments, folder=folder) as sam:
            if canary:
                _send_requests(stage, folder, sam)
        if sam.returncode:
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


def _send_requests(stage: Stage, folder: Path, sam: Popen[bytes]) -> None:
    """Run the contract suite on a stage until sam ends.

    The suite only makes traffic, so its results don't matter: CodeDeploy judges the new version by
    the requests that fail.
    """
    base_url, api_key = stage.outputs()["BaseUrl"], issue_check_key(stage)
    options = ("-qq", "--no-summary", *_READ_ONLY_CASES)
    while sam.poll() is None:
        programs.run_suite(folder, base_url, api_key, *options)
        time.sleep(1)


def _prepare_deployment(
    stage: Stage, folder: Path, commit: str, *, canary: bool
) -> list[str]:
    """Write the commit and time into an unpacked artifact's template; return the arguments for sam.

    The arguments set each parameter for which the artifact has a value, so that a rollback also
    reverts parameters that have changed since.
    """
    account = stage.bootstrap_outputs
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
