"""Prepare an AWS account for a stage: an administrator deploys ops/bootstrap.yaml once."""

import json
import subprocess
from typing import Annotated

import typer

from ops import programs
from ops.stage import Stage, StageError, StageName
from tools import ROOT


def bootstrap(
    stage: StageName,
    repository: str,
    parameters: Annotated[list[str], typer.Argument(default_factory=list)],
) -> None:
    """Prepare an AWS account for a stage; REPOSITORY is OWNER/NAME on GitHub.

    PARAMETERS are parameters of ops/bootstrap.yaml, each as NAME=VALUE. The repository must have a
    GitHub environment with the stage's name; the environment production must require a reviewer:
    https://docs.github.com/en/rest/deployments/environments
    """
    environment = ask_github(f"repos/{repository}/environments/{stage.name}")
    if stage.name == "production" and "required_reviewers" not in environment:
        raise StageError(
            "add a required reviewer to the environment production on GitHub"
        )
    details = json.loads(ask_github(f"repos/{repository}"))
    # The roles check the ids as well as the names of the owner and the repository, because a name
    # that becomes free could be taken by someone else.
    identity = [
        f"Owner={details['owner']['login']}",
        f"OwnerId={details['owner']['id']}",
        f"Repository={details['name']}",
        f"RepositoryId={details['id']}",
    ]
    create(stage, identity + parameters)


def create(stage: Stage, parameters: list[str]) -> None:
    """Create or update the bootstrap stack, and print its outputs."""
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
        raise StageError(f"sam deploy failed: {stage.state(stack)}")
    for output in stage.account.items():
        print(*output)


def ask_github(path: str) -> str:
    """Return the JSON response of GitHub's API; `gh` prints its errors to the terminal."""
    return subprocess.check_output(["gh", "api", path], text=True)
