"""A stage: its stack on AWS, and the account that it is in."""

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import boto3
import typer
from botocore.exceptions import ClientError

from tools import ROOT, CommandError
from tools.key_table import KeyTable

# What helps where nothing can be deployed to a stack. `{}` is its name.
_DELETE = "; next: an administrator: aws cloudformation delete-stack --stack-name {}"
_ADVICE = {
    "CREATE_FAILED": _DELETE,
    "DELETE_FAILED": _DELETE + " --deletion-mode FORCE_DELETE_STACK",
    "ROLLBACK_COMPLETE": _DELETE,
    "ROLLBACK_FAILED": _DELETE,
    "UPDATE_FAILED": "; next: an administrator: "
    "aws cloudformation rollback-stack --stack-name {}",
    "UPDATE_IN_PROGRESS": "; next: wait until it has ended, or: "
    "aws cloudformation cancel-update-stack --stack-name {}",
    "UPDATE_ROLLBACK_FAILED": "; next: "
    "aws cloudformation continue-update-rollback --stack-name {}",
}


class DeploymentError(CommandError):
    """The service cannot be deployed or tested; the message is for the person at the terminal."""


@dataclass(frozen=True)
class Stage:
    """A stage by its name in samconfig.toml.

    Args:
        name: The name.
        client: Makes a client of a service of AWS, with the credentials of the environment.
        expected_failures: Which file of `tests/contract/expected_failures` applies to it.
    """

    name: str
    client: Callable[..., Any] = boto3.client
    expected_failures: str = "aws"

    @property
    def stack(self) -> str:
        """The name of its stack."""
        return f"animal-store-{self.name}"

    def describe(self, stack: str = "") -> Any:
        """Describe the stage's stack, or the one that is named; empty if there is none."""
        cloudformation = self.client("cloudformation")
        try:
            stacks = cloudformation.describe_stacks(StackName=stack or self.stack)
        except ClientError as error:
            # The error has no code of its own; `sam deploy` reads the message, too.
            if "does not exist" in str(error):
                return {}
            raise
        return stacks["Stacks"][0]

    def state(self, stack: str = "") -> str:
        """Return a stack's name and state, and the next step if nothing can be deployed to it."""
        name = stack or self.stack
        description = self.describe(name)
        if not description:
            return f"{name} does not exist"
        status = description["StackStatus"]
        return f"{name} is {status}{_ADVICE.get(status, '').format(name)}"

    def outputs(self, stack: str = "") -> dict[str, str]:
        """Return the outputs of the stage's stack, or of the named one; empty if there are none."""
        pairs = self.describe(stack).get("Outputs", [])
        return {pair["OutputKey"]: pair["OutputValue"] for pair in pairs}

    def deployed(self, stack: str = "") -> dict[str, str]:
        """Return the outputs; raise DeploymentError, with the stack's state, if there are none."""
        if outputs := self.outputs(stack):
            return outputs
        raise DeploymentError(self.state(stack))

    def commit(self) -> str:
        """Return the commit that the stage runs; empty if nothing deployed one."""
        return self.outputs().get("Commit", "")

    @cached_property
    def account(self) -> dict[str, str]:
        """The outputs of ops/bootstrap.yaml's stack: the bucket of artifacts, and roles."""
        return self.deployed(f"{self.stack}-bootstrap")

    @property
    def bucket(self) -> str:
        """The name of the bucket of artifacts."""
        return self.account["ArtifactBucketName"]

    def keys(self) -> KeyTable:
        """Open its table of API keys, which records by ARN who issues and revokes one."""
        table, sts = self.deployed()["ApiKeysTableName"], self.client("sts")
        return KeyTable(
            self.client("dynamodb"), table, lambda: sts.get_caller_identity()["Arn"]
        )

    def misdirected(self) -> Iterator[str]:
        """Describe each alias `live` that does not send every request to the deployed version."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources")
        versions = "StackResourceSummaries[?ResourceType=='AWS::Lambda::Version']"
        for resource in pages.paginate(StackName=self.stack).search(versions):
            function, _, version = resource["PhysicalResourceId"].rpartition(":")
            alias = self.client("lambda").get_alias(FunctionName=function, Name="live")
            weights = alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})
            targets = [alias["FunctionVersion"], *weights]
            if targets != [version]:
                yield (
                    f"version {version} of {function.rpartition(':')[2]} was deployed, "
                    f"live points to {' and '.join(targets)}"
                )


def stage_named(name: str) -> Stage:
    """Read a stage's name from the command line: it must be in samconfig.toml and have a region.

    `default` is none: it has the parameters of a plain `sam deploy`.
    """
    config = tomllib.loads((ROOT / "samconfig.toml").read_text("utf-8"))
    names = [each for each in config if each not in {"version", "default"}]
    if name not in names:
        raise typer.BadParameter(f"samconfig.toml has {' and '.join(names)}")
    if not boto3.Session().region_name:
        raise DeploymentError("Set AWS_DEFAULT_REGION to the region of the stage.")
    return Stage(name)


StageName = Annotated[Stage, typer.Argument(parser=stage_named, metavar="STAGE")]
