"""Deploy an artifact to a stage and check it; go back if it fails, or when somebody asks for it."""

import json
import os
import time
import tomllib
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer
import yaml

from ops import artifacts, programs
from ops.artifacts import unpacked
from ops.stage import DeploymentError, Stage, StageName
from tools.packaging.build import build
from tools.packaging.targets import TARGETS

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
        build("arm64")
        file = TARGETS["arm64"].artifact
    content = file.read_bytes()
    with unpacked(content) as (folder, commit):
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
        try:
            _install(stage, folder, commit, canary=True)
            check_contract(stage, folder)
        except Exception as error:
            _go_back(stage, commit, "" if commit in {before, good} else good, error)
    _remember(stage, commit)


def rollback(
    stage: StageName,
    commit: Annotated[str, typer.Argument(help="Its first digits are enough.")] = "",
) -> None:
    """Deploy a stored artifact again at once, and check it; without COMMIT, list what is stored."""
    if not commit:
        for date, stored in artifacts.stored(stage):
            print(date, stored)
        return
    programs.require_sam()
    commit = artifacts.find(stage, commit)
    with unpacked(artifacts.load(stage, commit)) as (folder, _):
        try:
            _install(stage, folder, commit, canary=False)
            check_contract(stage, folder)
        except Exception as error:
            _go_back(stage, commit, "", error)
    _remember(stage, commit)


def check_contract(stage: Stage, folder: Path) -> None:
    """Raise unless a stage passes an artifact's contract suite (production: read-only cases)."""
    selection = _READ_ONLY if stage.name == "production" else ()
    if status := _run_suite(stage, folder, check_key(stage), "-rfE", *selection):
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


def _run_suite(stage: Stage, folder: Path, key: str, *arguments: str) -> int:
    url = stage.deployed()["BaseUrl"]
    return programs.run_suite(
        folder / "suite", url, key, stage.expected_failures, *arguments
    )


def _install(stage: Stage, folder: Path, commit: str, *, canary: bool) -> None:
    """Create or update the stack from an unpacked artifact, and protect it."""
    arguments = _mark(stage, folder, commit, canary=canary)
    # A new stack has no canary. It has a commit as soon as `sam` has made it: ask before.
    has_canary = canary and stage.commit()
    print(f"deploying {commit}; CloudFormation goes on if this is interrupted")
    with ThreadPoolExecutor() as pool:
        deployment = pool.submit(programs.sam, *arguments, folder=folder)
        if has_canary:
            _feed_canary(stage, folder, deployment)
    if not deployment.result():
        raise DeploymentError(f"sam deploy failed: {stage.state()}")
    cloudformation = stage.client("cloudformation")
    cloudformation.set_stack_policy(
        StackName=stage.stack, StackPolicyBody=json.dumps(STACK_POLICY)
    )
    cloudformation.update_termination_protection(
        StackName=stage.stack, EnableTerminationProtection=True
    )
    print(f"deployed {commit}; running its contract suite")


def _feed_canary(stage: Stage, folder: Path, deployment: Future[bool]) -> None:
    """Send read-only requests until `sam` returns: CodeDeploy judges a version by its requests.

    Nothing that fails here is a judgement.
    """
    key = ""
    while not deployment.done():
        with suppress(Exception):
            key = key or check_key(stage)
            _run_suite(stage, folder, key, "-qq", "--no-summary", *_READ_ONLY)
        wait([deployment], timeout=1)


def _go_back(stage: Stage, failed: str, good: str, error: Exception) -> NoReturn:
    """Deploy `good` at once, if there is one and `failed` runs; the last line says what runs."""
    lines, advice = [f"{failed} failed: {error}"], ""
    try:
        # Else nothing was deployed, or somebody has deployed since.
        if good and stage.commit() == failed:
            with unpacked(artifacts.load(stage, good)) as (folder, _):
                _install(stage, folder, good, canary=False)
                check_contract(stage, folder)
    except Exception as second:
        lines.append(f"going back to {good} failed: {second}")
        advice = f"; next: animal-store rollback {stage.name} {good}"
    lines.append(_what_runs(stage) + advice)
    raise DeploymentError("\n".join(lines)) from error


def _what_runs(stage: Stage) -> str:
    try:
        return f"{stage.name} runs {stage.commit() or 'nothing that was deployed so'}"
    except Exception as error:
        return f"what {stage.name} runs is unknown: {error}"


def _remember(stage: Stage, commit: str) -> None:
    """Write `last-good`, unless the stage has come to run something else during the check."""
    differences = [*stage.misdirected()]
    if (runs := stage.commit()) != commit:
        differences.insert(0, f"{stage.name} runs {runs}")
    if differences:
        raise DeploymentError(
            f"{commit} passed its check, but something else runs now, and last-good stays: "
            + "; ".join(differences)
        )
    artifacts.write_last_good(stage, commit)


def _mark(stage: Stage, folder: Path, commit: str, *, canary: bool) -> list[str]:
    """Write commit and time into an unpacked artifact's template; return sam's arguments for it.

    They name every parameter but an account's own, so that a rollback reverts changed ones.
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
