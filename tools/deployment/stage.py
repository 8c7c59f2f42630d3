"""A stage: what samconfig.toml asks for, and what its stack on AWS is."""

import os
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from tools.deployment.service import DeploymentError

TABLES = ("AnimalsTable", "ApiKeysTable")
client: Callable[..., Any] = boto3.client


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage by its name in samconfig.toml; the rehearsal changes a packaged template and its parameters in place."""

    name: str
    prepare: Callable[[Path, dict[str, str]], None] = lambda *_: None

    @property
    def stack(self) -> str:
        """The name of its stack."""
        return f"animal-store-{self.name}"

    def parameters(self, config: Path) -> dict[str, str]:
        """Return the parameters of its stack, with those that are not of the repository."""
        stages = tomllib.loads(config.read_text("utf-8"))
        if self.name not in stages:
            raise DeploymentError(f"samconfig.toml has no stage named {self.name}")
        given = dict(pair.split("=", 1) for pair in stages[self.name]["deploy"]["parameters"]["parameter_overrides"])
        email = {"AlarmEmail": os.environ["ALARM_EMAIL"]} if os.environ.get("ALARM_EMAIL") else {}
        return given | email | {"PermissionsBoundary": self.account()["PermissionsBoundaryArn"]}

    def account(self) -> dict[str, str]:
        """Return the outputs of bootstrap.yaml's stack: the bucket of artifacts, and roles."""
        if not (stack := _describe(f"{self.stack}-bootstrap")):
            raise DeploymentError(f"this account and region are not prepared: make bootstrap STAGE={self.name}")
        return _pairs(stack, "Output")

    def outputs(self) -> dict[str, str]:
        """Return the outputs of its stack; none if there is no stack."""
        return _pairs(_describe(self.stack), "Output")

    def used_parameters(self) -> dict[str, str]:
        """Return the parameters that its stack has."""
        return _pairs(_describe(self.stack), "Parameter")

    def status(self) -> str:
        """Return the status of its stack; empty if there is no stack."""
        return str(_describe(self.stack).get("StackStatus", ""))

    def wait(self) -> None:
        """Wait while another deployment is under way: CloudFormation takes one at a time."""
        # A stack whose first change set failed stays in review; deploying again takes it on.
        while (status := self.status()).endswith("IN_PROGRESS") and status != "REVIEW_IN_PROGRESS":
            time.sleep(5)

    def resources(self) -> dict[str, str]:
        """Return the physical names of its stack's resources by their logical ids."""
        pages = client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=self.stack)
        summaries = [summary for page in pages for summary in page["StackResourceSummaries"]]
        return {summary["LogicalResourceId"]: summary.get("PhysicalResourceId", "") for summary in summaries}

    def functions(self) -> dict[str, str]:
        """Return the names of its functions by their logical ids."""
        return {name: physical for name, physical in self.resources().items() if name.endswith("Function")}

    def restored_tables(self) -> dict[str, str]:
        """Return the tables that it uses in place of the stack's own ones, by logical id: see restore.py."""
        outputs, resources = self.outputs(), self.resources() if self.status() else {}
        in_use = {table: outputs[f"{table}Name"] for table in TABLES if f"{table}Name" in outputs}
        return {table: name for table, name in in_use.items() if name != resources[table]}


def _describe(stack: str) -> dict[str, Any]:
    try:
        found: list[dict[str, Any]] = client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if "does not exist" in str(error):
            return {}
        raise
    return found[0]


def _pairs(stack: dict[str, Any], kind: str) -> dict[str, str]:
    return {pair[f"{kind}Key"]: pair[f"{kind}Value"] for pair in stack.get(f"{kind}s", ())}
