"""A stage: what an artifact asks of it, and what its stack on AWS has."""

import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import boto3
import typer
from botocore.exceptions import ClientError

from tools import ROOT
from tools.packaging.artifact import Artifact

TABLES = ("AnimalsTable", "ApiKeysTable")
# What an event says of a failure, by its type: provisioning, a hook, and validation.
_REASONS = (
    "ResourceStatusReason",
    "HookStatusReason",
    "ValidationStatusReason",
    "ValidationPath",
)
# Of the account, not of the repository: an artifact that does not name them leaves them alone.
_KEPT = {"AlarmEmail", "CertificateArn", "DomainName"}


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
    client: Callable[..., Any] = field(default_factory=lambda: boto3.Session().client)
    execute: Callable[..., subprocess.CompletedProcess[Any]] = subprocess.run
    sleep: Callable[[float], None] = time.sleep

    def caller(self) -> str:
        """Name whoever the credentials belong to, by ARN."""
        return str(self.client("sts").get_caller_identity()["Arn"])

    def announce(self) -> None:
        """Say on stderr where a command acts, and as whom."""
        region, caller = self.client("cloudformation").meta.region_name, self.caller()
        account = caller.split(":")[4]
        print(f"{self.name}: account {account}, {region}, as {caller}", file=sys.stderr)

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

    def parameters(self, artifact: Artifact) -> dict[str, str]:
        """Return all parameters as an artifact has them: a rollback reverts changed ones."""
        declared = artifact.template["Parameters"]
        parameters = {}
        for name, parameter in declared.items():
            if "Default" in parameter:
                parameters[name] = str(parameter["Default"])
        used = self.used_parameters()
        for name in declared.keys() & used.keys() & _KEPT:
            parameters[name] = used[name]
        config = tomllib.loads((artifact.folder / "samconfig.toml").read_text("utf-8"))
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
                f"this account and region are not prepared for {self.name}: if they are the right "
                f"ones, make bootstrap STAGE={self.name} REPOSITORY=owner/name"
            )
        return outputs

    def outputs(self) -> dict[str, str]:
        """Return the outputs of its stack; none if there is no stack."""
        return self._pairs(self.stack, "Output")

    def deployed(self) -> dict[str, str]:
        """Return the outputs of its stack, which has to be there."""
        if outputs := self.outputs():
            return outputs
        raise DeploymentError(f"{self.name} has no stack in this account and region")

    def used_parameters(self) -> dict[str, str]:
        """Return the parameters that its stack has."""
        return self._pairs(self.stack, "Parameter")

    def describe(self, stack: str = "") -> dict[str, Any]:
        """Return what CloudFormation says of its stack, or another; nothing if there is none."""
        cloudformation = self.client("cloudformation")
        try:
            answer = cloudformation.describe_stacks(StackName=stack or self.stack)
        except ClientError as error:
            if "does not exist" in str(error):
                return {}
            raise
        return dict(answer["Stacks"][0])

    def status(self) -> str:
        """Return the status of its stack; empty if there is no stack."""
        return str(self.describe().get("StackStatus", ""))

    def wait(self) -> None:
        """Wait while another deployment is under way: CloudFormation takes one at a time."""
        # A stack whose first change set failed stays in review; deploying again picks it up.
        while re.search("(?<!REVIEW)_IN_PROGRESS$", self.status()):
            self.sleep(5)

    def cancel(self) -> None:
        """Cancel the update that is under way, if there is one."""
        if self.status() != "UPDATE_IN_PROGRESS":
            return
        try:
            self.client("cloudformation").cancel_update_stack(StackName=self.stack)
        except ClientError:
            if self.status() == "UPDATE_IN_PROGRESS":  # it has not just ended
                raise

    def resources(self, kind: str = "", stack: str = "") -> dict[str, str]:
        """Return the physical names of a stack's resources, by logical id.

        Args:
            kind: How the types end that are wanted, such as `Alarm`.
            stack: Another than the stage's.
        """
        if not self.describe(stack):
            return {}
        paginator = self.client("cloudformation").get_paginator("list_stack_resources")
        pages = paginator.paginate(StackName=stack or self.stack)
        return {
            each["LogicalResourceId"]: each.get("PhysicalResourceId", "")
            for each in pages.search("StackResourceSummaries")
            if each["ResourceType"].endswith(kind)
        }

    def failures(self, since: datetime) -> list[str]:
        """Say why CloudFormation refused a change set or took an update back.

        Validation before a deployment gives its reasons to DescribeEvents alone
        (AWSCloudFormation/latest/UserGuide/validate-stack-deployments.html).
        """
        paginator = self.client("cloudformation").get_paginator("describe_events")
        pages = paginator.paginate(StackName=self.stack, Filters={"FailedEvents": True})
        found = []
        for event in pages.search("OperationEvents"):
            reasons = [event[name] for name in _REASONS if name in event]
            if reasons and event["Timestamp"] >= since:
                resource = event.get("LogicalResourceId", self.stack)
                found.append(f"{resource}: {', '.join(reasons)}")
        return found[::-1]  # the oldest first: it is the cause

    def _pairs(self, stack: str, kind: str) -> dict[str, str]:
        return {
            pair[f"{kind}Key"]: pair[f"{kind}Value"]
            for pair in self.describe(stack).get(f"{kind}s", ())
        }


def named(name: str) -> Stage:
    """Make a stage of samconfig.toml."""
    config = (ROOT / "samconfig.toml").read_text("utf-8")
    names = re.findall(r"(?m)^\[(\w+)\.deploy\.", config)
    if name not in names:
        raise typer.BadParameter(f"{name!r} is not one of {names} (samconfig.toml)")
    return Stage(name)


StageName = Annotated[Stage, typer.Argument(parser=named, metavar="STAGE")]
