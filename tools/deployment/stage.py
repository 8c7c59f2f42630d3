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

from tools import ROOT
from tools.deployment.service import DeploymentError

TABLES = ("AnimalsTable", "ApiKeysTable")
_WAIT_S = 3600
client: Callable[..., Any] = boto3.client


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage by its name in samconfig.toml."""

    name: str

    @property
    def stack(self) -> str:
        """The name of its stack."""
        return f"animal-store-{self.name}"

    def parameters(self, config: Path = ROOT / "samconfig.toml") -> dict[str, str]:
        """Return the parameters of its stack, with those that are not of the repository."""
        stages = tomllib.loads(config.read_text("utf-8"))
        if self.name not in stages:
            raise DeploymentError(f"samconfig.toml has no stage named {self.name}")
        given = dict(pair.split("=", 1) for pair in stages[self.name]["deploy"]["parameters"]["parameter_overrides"])
        given["PermissionsBoundary"] = self.account()["PermissionsBoundaryArn"]
        if email := os.environ.get("ALARM_EMAIL"):
            given["AlarmEmail"] = email
        return given

    def account(self) -> dict[str, str]:
        """Return the outputs of bootstrap.yaml's stack: the bucket of artifacts, and roles."""
        if not (found := _outputs(f"{self.stack}-bootstrap")):
            raise DeploymentError(f"this account and region are not prepared for it: make bootstrap STAGE={self.name}")
        return found

    def outputs(self) -> dict[str, str]:
        """Return the outputs of its stack; none if there is no stack."""
        return _outputs(self.stack)

    def used_parameters(self) -> dict[str, str]:
        """Return the parameters that its stack has."""
        found = (_describe(self.stack) or {}).get("Parameters", ())
        return {parameter["ParameterKey"]: parameter["ParameterValue"] for parameter in found}

    def status(self) -> str:
        """Return the status of its stack; empty if there is no stack."""
        return str((_describe(self.stack) or {"StackStatus": ""})["StackStatus"])

    def wait(self) -> None:
        """Wait while another deployment is under way: CloudFormation takes one at a time."""
        deadline = time.monotonic() + _WAIT_S
        while self.status().endswith("IN_PROGRESS"):
            if time.monotonic() > deadline:
                raise DeploymentError(f"{self.stack} is still {self.status()}")
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


def _describe(stack: str) -> Any:
    try:
        return client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise


def _outputs(stack: str) -> dict[str, str]:
    found = (_describe(stack) or {}).get("Outputs", ())
    return {output["OutputKey"]: output["OutputValue"] for output in found}
