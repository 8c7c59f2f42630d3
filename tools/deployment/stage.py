"""A stage: what an artifact asks of it, and what its stack on AWS has."""

import os
import subprocess
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import boto3
import typer
import yaml
from botocore.exceptions import ClientError

from tools import ROOT

TABLES = ("AnimalsTable", "ApiKeysTable")
# Of the account, not of the repository: an artifact that does not name them leaves them alone.
_KEPT = ("AlarmEmail", "CertificateArn", "DomainName")


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
    client: Callable[..., Any] = field(
        default_factory=lambda: boto3.Session().client, repr=False
    )
    execute: Callable[..., subprocess.CompletedProcess[Any]] = field(
        default=subprocess.run, repr=False
    )

    def caller(self) -> str:
        """Name whoever the credentials belong to, by ARN."""
        return str(self.client("sts").get_caller_identity()["Arn"])

    def run(self, *command: str, cwd: Path = ROOT) -> str:
        """Run a command and return what it printed."""
        environment = os.environ | {"SAM_CLI_TELEMETRY": "0"}
        done = self.execute(
            command,
            cwd=cwd,
            env=environment,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise DeploymentError(
                f"{done.stdout}{done.stderr}\nfailed: {' '.join(command)}"
            )
        return str(done.stdout)

    @property
    def stack(self) -> str:
        """The name of its stack."""
        return f"animal-store-{self.name}"

    def parameters(self, artifact: Path) -> dict[str, str]:
        """Return all parameters as an artifact has them: a rollback reverts changed ones."""
        config = tomllib.loads((artifact / "samconfig.toml").read_text("utf-8"))
        template = yaml.safe_load((artifact / "template.yaml").read_text("utf-8"))
        parameters = {}
        for name, declared in template["Parameters"].items():
            if "Default" in declared:
                parameters[name] = str(declared["Default"])
        for name, value in self.used_parameters().items():
            if name in _KEPT and name in parameters:
                parameters[name] = value
        for pair in config[self.name]["deploy"]["parameters"]["parameter_overrides"]:
            name, _, value = pair.partition("=")
            parameters[name] = value
        if email := os.environ.get("ALARM_EMAIL"):
            parameters["AlarmEmail"] = email
        parameters["PermissionsBoundary"] = self.account()["PermissionsBoundaryArn"]
        return parameters

    def account(self) -> dict[str, str]:
        """Return the outputs of bootstrap.yaml's stack: the bucket of artifacts, and roles."""
        if not (outputs := self._pairs(f"{self.stack}-bootstrap", "Output")):
            raise DeploymentError(
                f"this account and region are not prepared: make bootstrap STAGE={self.name}"
            )
        return outputs

    def outputs(self) -> dict[str, str]:
        """Return the outputs of its stack; none if there is no stack."""
        return self._pairs(self.stack, "Output")

    def used_parameters(self) -> dict[str, str]:
        """Return the parameters that its stack has."""
        return self._pairs(self.stack, "Parameter")

    def status(self) -> str:
        """Return the status of its stack; empty if there is no stack."""
        return str(self._describe(self.stack).get("StackStatus", ""))

    def tags(self) -> list[dict[str, str]]:
        """Return the tags of its stack."""
        return list(self._describe(self.stack).get("Tags", []))

    def wait(self) -> None:
        """Wait while another deployment is under way: CloudFormation takes one at a time."""
        # A stack whose first change set failed stays in review; deploying again picks it up.
        while (status := self.status()).endswith(
            "IN_PROGRESS"
        ) and status != "REVIEW_IN_PROGRESS":
            time.sleep(5)

    def resources(self) -> dict[str, str]:
        """Return the physical names of its stack's resources by their logical ids."""
        paginator = self.client("cloudformation").get_paginator("list_stack_resources")
        names = {}
        for page in paginator.paginate(StackName=self.stack):
            for each in page["StackResourceSummaries"]:
                names[each["LogicalResourceId"]] = each.get("PhysicalResourceId", "")
        return names

    def unconfirmed_subscriptions(self) -> list[str]:
        """Return the addresses that get no alarms until they confirm that they want them."""
        topic = self.resources()["AlarmTopic"]
        answer = self.client("sns").list_subscriptions_by_topic(TopicArn=topic)
        return [
            str(each["Endpoint"])
            for each in answer["Subscriptions"]
            if each["SubscriptionArn"] == "PendingConfirmation"
        ]

    def _describe(self, stack: str) -> dict[str, Any]:
        cloudformation = self.client("cloudformation")
        try:
            return dict(cloudformation.describe_stacks(StackName=stack)["Stacks"][0])
        except ClientError as error:
            if "does not exist" in str(error):
                return {}
            raise

    def _pairs(self, stack: str, kind: str) -> dict[str, str]:
        return {
            pair[f"{kind}Key"]: pair[f"{kind}Value"]
            for pair in self._describe(stack).get(f"{kind}s", ())
        }


StageName = Annotated[Stage, typer.Argument(parser=Stage, metavar="STAGE")]
