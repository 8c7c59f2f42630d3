"""Prepare an account and region for a stage, once, by an administrator: bootstrap.yaml."""

import json
from typing import Annotated

import typer

from tools.deployment.service import SAM
from tools.deployment.stage import DeploymentError, Stage, StageName


def bootstrap(
    stage: StageName,
    repository: str,
    parameters: Annotated[list[str] | None, typer.Argument()] = None,
) -> None:
    """Prepare the account for a stage of OWNER/REPOSITORY; PARAMETERS are NAME=VALUE."""
    stage.announce()
    create(stage, identity(stage, repository) + (parameters or []))
    print(*(f"{name}: {value}" for name, value in stage.account().items()), sep="\n")


def identity(stage: Stage, repository: str) -> list[str]:
    """Ask GitHub for the numbers by which the jobs of an environment of main are trusted.

    https://docs.github.com/en/rest/deployments/branch-policies

    Raises:
        DeploymentError: Something else than the branch main may use the environment.
    """
    path = f"repos/{repository}/environments/{stage.name}"
    rules = json.loads(stage.run("gh", "api", path))["deployment_branch_policy"]
    answer = json.loads(stage.run("gh", "api", f"{path}/deployment-branch-policies"))
    allowed = [(each["type"], each["name"]) for each in answer["branch_policies"]]
    if not rules or rules["protected_branches"] or allowed != [("branch", "main")]:
        raise DeploymentError(
            f"more than main may use the environment {stage.name} of {repository} (patterns: "
            f"{allowed}): first let only main use it, under Settings, Environments, Deployment "
            "branches and tags, Selected branches and tags"
        )
    answer = json.loads(stage.run("gh", "api", f"repos/{repository}"))
    owner, _, name = repository.partition("/")
    numbers = [f"OwnerId={answer['owner']['id']}", f"RepositoryId={answer['id']}"]
    return [f"Owner={owner}", f"Repository={name}", *numbers]


def create(stage: Stage, parameters: list[str]) -> None:
    """Create or update the stack of the account."""
    if "CreateApiGatewayLoggingRole=true" in parameters:
        _keep_logging_role(stage)
    stage.run(SAM, "deploy", "--template-file", "bootstrap.yaml", "--stack-name",
        f"{stage.stack}-bootstrap", "--capabilities", "CAPABILITY_IAM",
        "--no-fail-on-empty-changeset", "--no-progressbar",
        "--parameter-overrides", f"Stage={stage.name}", *parameters)  # fmt: skip


def _keep_logging_role(stage: Stage) -> None:
    """Refuse to replace the role with which every API of the account and region writes logs."""
    used = stage.client("apigateway").get_account().get("cloudwatchRoleArn")
    own = stage.resources(stack=f"{stage.stack}-bootstrap").get("ApiGatewayLoggingRole")
    if used and used.rpartition("/")[2] != own:
        raise DeploymentError(
            f"API Gateway writes logs as {used}, for every API of this account and region: leave "
            "CreateApiGatewayLoggingRole out, and it does so for the stage too"
        )
