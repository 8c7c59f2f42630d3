"""Prepare an account and region for a stage, once, by an administrator: bootstrap.yaml."""

from typing import Annotated

import typer

from tools.deployment.stage import SAM, DeploymentError, Stage, StageName

# Numbers too: roles go on trusting a repository that is renamed, and none that takes its name.
_IDENTITY = r'"Owner=\(.owner.login) OwnerId=\(.owner.id) Repository=\(.name) RepositoryId=\(.id)"'


def bootstrap(
    stage: StageName,
    repository: str,
    parameters: Annotated[list[str] | None, typer.Argument()] = None,
) -> None:
    """Prepare the account for a stage of OWNER/REPOSITORY; PARAMETERS are NAME=VALUE.

    Its deployments on GitHub (https://docs.github.com/en/rest/deployments) have to be protected.
    """
    stage.announce()
    environment = f"repos/{repository}/environments/{stage.name}"
    for each in (environment, f"{environment}-check"):
        policies = f"{each}/deployment-branch-policies"
        if _ask(stage, policies, ".branch_policies[].name") != ["main"]:
            raise DeploymentError(f"on GitHub, let only main use {each}")
    rules = _ask(stage, environment, ".protection_rules[].type")
    if stage.name == "production" and "required_reviewers" not in rules:
        raise DeploymentError(f"on GitHub, give {environment} a required reviewer")
    identity = _ask(stage, f"repos/{repository}", _IDENTITY)
    print(create(stage, identity + (parameters or [])))


def _ask(stage: Stage, path: str, query: str) -> list[str]:
    return stage.run("gh", "api", path, "--jq", query).split()


def create(stage: Stage, parameters: list[str]) -> str:
    """Create or update the stack of the account; return what sam says, the outputs at the end."""
    return stage.run(SAM, "deploy", "--template-file", "bootstrap.yaml", "--stack-name",
        f"{stage.stack}-bootstrap", "--capabilities", "CAPABILITY_IAM",
        "--no-fail-on-empty-changeset", "--parameter-overrides",
        f"Stage={stage.name}", *parameters)  # fmt: skip
