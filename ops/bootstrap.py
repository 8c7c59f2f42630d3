"""Prepare an account and region for a stage, once, by an administrator: ops/bootstrap.yaml."""

import json
import subprocess
from typing import Annotated

import typer

from ops import programs
from ops.stage import DeploymentError, Stage, StageName
from tools import ROOT


def bootstrap(
    stage: StageName,
    repository: str,
    parameters: Annotated[list[str], typer.Argument(default_factory=list)],
) -> None:
    """Prepare the account for a stage of OWNER/REPOSITORY; PARAMETERS are NAME=VALUE.

    On GitHub an environment of the stage's name has to be there (of production, with a reviewer):
    https://docs.github.com/en/rest/deployments/environments
    """
    programs.require_sam()
    environment = ask_github(f"repos/{repository}/environments/{stage.name}")
    if stage.name == "production" and "required_reviewers" not in environment:
        raise DeploymentError("on GitHub, give production a required reviewer")
    facts = json.loads(ask_github(f"repos/{repository}"))
    # Numbers too: roles trust no repository that takes another's name.
    identity = [
        f"Owner={facts['owner']['login']}",
        f"OwnerId={facts['owner']['id']}",
        f"Repository={facts['name']}",
        f"RepositoryId={facts['id']}",
    ]
    create(stage, identity + parameters)


def create(stage: Stage, parameters: list[str]) -> None:
    """Create or update the stack of the account; print its outputs."""
    stack = f"{stage.stack}-bootstrap"
    sam = programs.sam(
        "deploy",
        "--template-file=ops/bootstrap.yaml",
        f"--stack-name={stack}",
        "--capabilities=CAPABILITY_IAM",
        "--no-fail-on-empty-changeset",
        "--parameter-overrides",
        f"Stage={stage.name}",
        *parameters,
        folder=ROOT,
    )
    if sam.wait():
        raise DeploymentError(f"sam deploy failed: {stage.state(stack)}")
    for name, value in stage.deployed(stack).items():
        print(name, value)


def ask_github(path: str) -> str:
    """Return what GitHub's API answers, as JSON; errors of `gh` go to the terminal."""
    return subprocess.check_output(["gh", "api", path], text=True)
