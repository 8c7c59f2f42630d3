"""Deploy an artifact to a stage and run the contract suite; roll back on failure or request."""

import json
import os
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
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

    If the suite fails, deploy the last artifact that passed it.
    """
    commit, content = artifacts.read(file)
    running = stage.commit()
    # If a deployment was approved late, a newer commit may have been deployed in the meantime: then
    # refuse the older commit.
    is_new = running not in {"", commit}
    if is_new and not allow_older and programs.is_older(commit, running):
        raise StageError(f"{commit} is older than {running}, which {stage.name} runs")
    # Store the artifact before the stack changes, so that a rollback can redeploy it.
    artifacts.store(stage, commit, content)
    _release(stage, commit, canary=True)


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
    # Somebody rolls back from a commit that may have passed its suite. So until this rollback has
    # passed, no failed deployment may bring the commit back.
    artifacts.write_last_good(stage, "")
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
    if selection:
        print("no check of production adds an animal; the check of staging does")


def check_key(stage: Stage) -> str:
    """Issue an API key for the contract suite; the key expires in an hour."""
    expires = int(time.time()) + 3600
    key, _ = stage.keys().issue("check", "test", expires, is_check=True)
    if "GITHUB_ACTIONS" in os.environ:
        print(f"::add-mask::{key}")
    return key


def _release(stage: Stage, commit: str, *, canary: bool = False) -> None:
    """Install a stored artifact, and record its commit as `last-good`.

    If its contract suite fails, install the commit that `last-good` names. The last line of the
    error's message says what the stage then runs.
    """
    with _says_what_runs(stage):
        try:
            _install(stage, commit, canary=canary)
        except Exception as error:
            message = f"{commit} failed: {error}"
            print(message)
            last_good = artifacts.last_good(stage)
            # If the stage runs another commit, either sam failed, and CloudFormation went back, or
            # someone else has deployed since.
            if last_good not in {"", commit} and stage.commit() == commit:
                print(f"going back to {last_good}")
                _install(stage, last_good)
            raise StageError(message) from error
        print(f"{commit} passed its check")
        running, misrouted = stage.commit(), [*stage.misrouted_aliases()]
        if running != commit or misrouted:
            now = "; ".join([f"{stage.name} runs {running}", *misrouted])
            raise StageError(f"last-good was not changed: now {now}")
        artifacts.write_last_good(stage, commit)


@contextmanager
def _says_what_runs(stage: Stage) -> Iterator[None]:
    """If the block fails or is interrupted, say what the stage runs, and the next command."""
    try:
        yield
    except KeyboardInterrupt:
        # Whoever cancels a job on GitHub gets seven seconds until the job is killed.
        print(
            "interrupted: if CloudFormation deploys something now, nothing checks it; "
            f"to see what runs: animal-store status {stage.name}"
        )
        print(_what_runs(stage))
        raise
    except Exception as error:
        raise StageError(f"{error}\n{_what_runs(stage)}") from error


def _what_runs(stage: Stage) -> str:
    try:
        running, last_good = stage.commit(), artifacts.last_good(stage)
    except Exception as error:
        return f"next: animal-store status {stage.name}, because AWS does not answer: {error}"
    now = f"{stage.name} runs {running or 'no known commit'}"
    if running in {"", last_good}:
        return now
    return (
        f"{now}, but last-good is {last_good or 'empty'}; next, to check {running} again or to go "
        f"back: animal-store rollback {stage.name} COMMIT"
    )


def _install(stage: Stage, commit: str, *, canary: bool = False) -> None:
    """Create or update the stack from a stored artifact, protect the stack, and test it."""
    with artifacts.unpack(stage, commit) as folder:
        arguments = _prepare_deployment(stage, folder, commit, canary=canary)
        # Only an update has a canary. So look for the stage's URL now: if `sam` creates the stack,
        # the stage has no URL yet, and gets no requests.
        has_canary = canary and stage.commit() != ""
        base_url = stage.outputs()["BaseUrl"] if has_canary else ""
        print(f"deploying {commit}; CloudFormation continues if this is interrupted")
        sam = programs.sam(*arguments, folder=folder)
        rounds = _send_requests(stage, folder, base_url, sam) if has_canary else 0
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
        if has_canary and not rounds:
            print(
                "! the canary got no requests from here, so it may have judged nothing"
            )


def _send_requests(stage: Stage, folder: Path, base_url: str, sam: Popen[bytes]) -> int:
    """Send requests to a stage until sam ends; return how often the suite ran.

    CodeDeploy judges the new version by its failed requests. Ignore the results of this run of the
    suite: only the traffic counts.
    """
    rounds, api_key = 0, ""
    while sam.poll() is None:
        try:
            api_key = api_key or check_key(stage)
            suite = ("-qq", "--no-summary", *_READ_ONLY_CASES)
            status = programs.run_suite(folder, base_url, api_key, *suite)
            rounds += status in {0, 1}  # pytest ran all cases
        except Exception as error:
            print("sending requests to the canary failed:", error)
        time.sleep(1)
    print(f"the contract suite sent {rounds} rounds of requests to the canary")
    return rounds


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
