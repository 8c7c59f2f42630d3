"""A stage: its stack on AWS, and the account that it is in."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import boto3
import typer

from tools import ROOT
from tools.key_table import KeyTable

SAM = str(ROOT / ".tools/sam/bin/sam")
# What is said of a state in which nothing can be deployed, before the stack's name.
_ADVICE = {
    "ROLLBACK_COMPLETE": "nothing is deployed; next: aws cloudformation delete-stack --stack-name ",
    "UPDATE_ROLLBACK_FAILED": "next: aws cloudformation continue-update-rollback --stack-name ",
}


class DeploymentError(Exception):
    """The service cannot be deployed or tested; the message is for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage by its name in samconfig.toml, and how it is reached.

    Args:
        name: The name.
        client: Makes a client of a service of AWS, with the credentials of the environment.
        execute: Starts each command, as `subprocess.run` does.
    """

    name: str
    client: Callable[..., Any] = boto3.client
    execute: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run

    @property
    def stack(self) -> str:
        """The name of its stack."""
        return f"animal-store-{self.name}"

    def run(self, *command: str) -> str:
        """Run a command in the checkout and return what it printed."""
        done = self.execute(command, cwd=ROOT, check=True, stdout=-1, text=True)
        return done.stdout

    def describe(self, stack: str = "") -> Any:
        """Return what CloudFormation says of its stack, or another."""
        return self.client("cloudformation").describe_stacks(
            StackName=stack or self.stack
        )["Stacks"][0]

    def state(self) -> str:
        """Say how its stack is, and what to do if it cannot be deployed."""
        status = self.describe()["StackStatus"]
        return f"{status}: {_ADVICE.get(status, '')}{self.stack}"

    def deployed(self, stack: str = "") -> dict[str, str]:
        """Return the outputs of its stack, or another."""
        if pairs := self.describe(stack).get("Outputs"):
            return {each["OutputKey"]: each["OutputValue"] for each in pairs}
        raise DeploymentError(self.state())

    def account(self) -> dict[str, str]:
        """Return the outputs of ops/bootstrap.yaml's stack: the bucket of artifacts, and roles."""
        return self.deployed(f"{self.stack}-bootstrap")

    def keys(self) -> KeyTable:
        """Open its table of API keys, which records by ARN who issues and revokes one."""
        table, sts = self.deployed()["ApiKeysTableName"], self.client("sts")
        return KeyTable(
            self.client("dynamodb"), table, lambda: sts.get_caller_identity()["Arn"]
        )


StageName = Annotated[Stage, typer.Argument(parser=Stage, metavar="STAGE")]
