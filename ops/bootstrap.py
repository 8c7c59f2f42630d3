"""Prepare an account and region for a stage, once, by an administrator: ops/bootstrap.yaml."""

from typing import Annotated

import typer

from ops.stage import SAM, DeploymentError, Stage, StageName

# Numbers too: roles trust no repository that takes another's name.
_IDENTITY = r'"Owner=\(.owner.login) OwnerId=\(.owner.id) Repository=\(.name) RepositoryId=\(.id)"'


def bootstrap(
    stage: StageName,
    repository: str,
    parameters: Annotated[list[str], typer.Argument(default_factory=list)],
) -> None:
    """Prepare the account for a stage of OWNER/REPOSITORY; PARAMETERS are NAME=VALUE.

    On GitHub an environment of the stage's name has to be there (of production, with a reviewer):
    https://docs.github.com/en/rest/deployments/environments
    """
    path = f"repos/{repository}"
    environment = stage.run("gh", "api", f"{path}/environments/{stage.name}")
    if stage.name == "production" and "required_reviewers" not in environment:
        raise DeploymentError("on GitHub, give production a required reviewer")
    identity = stage.run("gh", "api", path, "--jq", _IDENTITY).split()
    create(stage, identity + parameters)


def create(stage: Stage, parameters: list[str]) -> None:
    """Create or update the stack of the account; print what sam says, the outputs at the end."""
    print(stage.run(SAM, "deploy", "--template-file", "ops/bootstrap.yaml", "--stack-name",
        f"{stage.stack}-bootstrap", "--capabilities", "CAPABILITY_IAM",
        "--no-fail-on-empty-changeset", "--parameter-overrides",
        f"Stage={stage.name}", *parameters))  # fmt: skip
