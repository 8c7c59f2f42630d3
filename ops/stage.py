"""A stage, such as staging or production: its stack on AWS, and its account."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import boto3
import typer
from botocore.exceptions import ClientError

from tools import CommandError
from tools.key_table import KeyTable

_DELETE = "an administrator: aws cloudformation delete-stack --stack-name {}"
# Maps a stack's state, or a suffix that several states share, to the next step. `{}` is the stack's
# name. In any other state, do nothing, or just wait until its operation has ended.
_NEXT_STEPS = {
    "CREATE_FAILED": _DELETE,
    "DELETE_FAILED": _DELETE + " --deletion-mode FORCE_DELETE_STACK",
    "REVIEW_IN_PROGRESS": "deploy again, because nothing was created",
    "ROLLBACK_COMPLETE": _DELETE,
    "ROLLBACK_FAILED": _DELETE,
    "UPDATE_FAILED": "an administrator: aws cloudformation rollback-stack --stack-name {}",
    "UPDATE_ROLLBACK_FAILED": "aws cloudformation continue-update-rollback --stack-name {}",
    "FAILED": "aws cloudformation describe-events --stack-name {} "
    "--filters FailedEvents=true",
}


class StageError(CommandError):
    """A command for a stage failed; the message is for the person at the terminal."""


@dataclass(frozen=True)
class Stage:
    """A stage of the service on AWS.

    Args:
        name: The stage's name in samconfig.toml.
        client: A function that takes the name of an AWS service and returns the SDK's client.
    """

    name: str
    client: Callable[..., Any] = boto3.client

    @property
    def stack(self) -> str:
        """The name of the stage's stack."""
        return f"animal-store-{self.name}"

    def describe(self) -> Any:
        """Return the description of the stage's stack; empty if the stack is missing."""
        cloudformation = self.client("cloudformation")
        try:
            response = cloudformation.describe_stacks(StackName=self.stack)
        except ClientError as error:
            # A missing stack has no error code of its own, so read the error's message.
            if "does not exist" in str(error):
                return {}
            raise
        return response["Stacks"][0]

    def state(self) -> str:
        """Return the stack's name and state, and the next step if one is needed."""
        status = self.describe().get("StackStatus", "")
        if not status:
            # The person at the terminal may have chosen another account or region than they think.
            account = self.client("sts").get_caller_identity()["Account"]
            region = self.client("cloudformation").meta.region_name
            return f"{self.stack} is not deployed in {region} of the account {account}"
        ending = status.rpartition("_")[2]
        step = _NEXT_STEPS.get(status) or _NEXT_STEPS.get(ending)
        state = f"{self.stack} is {status}"
        return f"{state}; next: {step.format(self.stack)}" if step else state

    def outputs(self) -> dict[str, str]:
        """Return the outputs of the stage's stack.

        Raises:
            StageError: The stack has no outputs; the message describes the stack's state.
        """
        pairs = self.describe().get("Outputs")
        if not pairs:
            raise StageError(self.state())
        return {pair["OutputKey"]: pair["OutputValue"] for pair in pairs}

    def commit(self) -> str:
        """Return the commit that was deployed last; empty if it is unknown."""
        with suppress(StageError):
            return self.outputs().get("Commit", "")
        return ""

    @cached_property
    def bootstrap_outputs(self) -> dict[str, str]:
        """The outputs of the stack of ops/bootstrap.yaml, such as the bucket and the roles."""
        return Stage(f"{self.name}-bootstrap", self.client).outputs()

    @property
    def bucket(self) -> str:
        """The name of the bucket of artifacts."""
        return self.bootstrap_outputs["ArtifactBucketName"]

    def keys(self) -> KeyTable:
        """Return the table of API keys; a record has the ARN of who issued or revoked the key."""
        return KeyTable(
            self.client("dynamodb"),
            self.outputs()["ApiKeysTableName"],
            lambda: self.client("sts").get_caller_identity()["Arn"],
        )

    def misrouted_aliases(self) -> Iterator[str]:
        """Describe each function whose alias `live` leads to any version but the deployed one."""
        paginator = self.client("cloudformation").get_paginator("list_stack_resources")
        version_arns = (
            "StackResourceSummaries[?ResourceType=='AWS::Lambda::Version']"
            ".PhysicalResourceId"
        )
        for arn in paginator.paginate(StackName=self.stack).search(version_arns):
            function, version = arn.split(":")[-2:]
            alias = self.client("lambda").get_alias(FunctionName=function, Name="live")
            weights = alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})
            targets = " and ".join([alias["FunctionVersion"], *weights])
            if targets != version:
                yield f"version {version} of {function} was deployed, but live points to {targets}"


StageArgument = Annotated[
    Stage, typer.Argument(parser=Stage, metavar="STAGE", help="staging or production")
]
