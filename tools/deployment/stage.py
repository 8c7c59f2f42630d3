"""A stage: its stack on AWS, and the account that it is in."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import boto3
import typer

from tools import ROOT
from tools.key_table import KeyTable

SAM = str(ROOT / ".tools/sam/bin/sam")
# What to do about a state in which nothing can be deployed.
_ADVICE = {
    "ROLLBACK_COMPLETE": "Nothing is deployed. Next: aws cloudformation delete-stack",
    "UPDATE_ROLLBACK_FAILED": "Next: aws cloudformation continue-update-rollback",
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
        sleep: Waits for some seconds.
    """

    name: str
    client: Callable[..., Any] = boto3.client
    execute: Callable[..., subprocess.CompletedProcess[Any]] = subprocess.run
    sleep: Callable[[float], None] = time.sleep

    @property
    def stack(self) -> str:
        """The name of its stack."""
        return f"animal-store-{self.name}"

    def caller(self) -> str:
        """Name whoever the credentials belong to, by ARN."""
        return str(self.client("sts").get_caller_identity()["Arn"])

    def announce(self) -> None:
        """Say on stderr where a command acts, and as whom."""
        region = self.client("sts").meta.region_name
        print(self.name, "in", region, "as", self.caller(), file=sys.stderr)

    def run(self, *command: str) -> str:
        """Run a command in the checkout and return what it printed."""
        done = self.execute(command, cwd=ROOT, check=True, stdout=-1, text=True)
        return str(done.stdout)

    def describe(self, stack: str = "") -> Any:
        """Return what CloudFormation says of its stack, or another."""
        client, name = self.client("cloudformation"), stack or self.stack
        return client.describe_stacks(StackName=name)["Stacks"][0]

    def state(self) -> str:
        """Say how its stack is, and what to do if it cannot be deployed."""
        status = self.describe()["StackStatus"]
        advice = (
            f". {_ADVICE[status]} --stack-name {self.stack}"
            if status in _ADVICE
            else ""
        )
        return f"{self.stack} is {status}{advice}"

    def deployed(self, stack: str = "") -> dict[str, str]:
        """Return the outputs of its stack, or another."""
        if pairs := self.describe(stack).get("Outputs"):
            return {each["OutputKey"]: each["OutputValue"] for each in pairs}
        raise DeploymentError(self.state())

    def account(self) -> dict[str, str]:
        """Return the outputs of bootstrap.yaml's stack: the bucket of artifacts, and roles."""
        return self.deployed(f"{self.stack}-bootstrap")

    def keys(self) -> KeyTable:
        """Open its table of API keys."""
        table = self.deployed()["ApiKeysTableName"]
        return KeyTable(self.client("dynamodb"), table, self.caller)

    def wait(self, what: str, state: Callable[[], str]) -> None:
        """Wait up to an hour for something of CloudFormation's that is IN_PROGRESS."""
        for _ in range(180):
            found = state()
            if "IN_PROGRESS" not in found:
                return
            print(f"waiting up to an hour for {what}: {found}")
            self.sleep(20)
        raise DeploymentError(f"gave up after an hour: {found}")


StageName = Annotated[Stage, typer.Argument(parser=Stage, metavar="STAGE")]
