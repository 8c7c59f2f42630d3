"""Where the steps are taken: on an emulator of AWS, or in a real account."""

import base64
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import stamina
from botocore.exceptions import ClientError

from tests.rehearsal import emulator
from tools.deployment.stage import Stage, client

PREFIX = "animal-store-"


class Emulator:
    """An account on the emulator, which enforces permissions."""

    architecture = "x86_64"
    expected_failures = "rehearsal"
    is_emulated = True

    def __init__(self, endpoint: str) -> None:
        """Remember where the emulator is."""
        self._endpoint = endpoint

    def become_administrator(self) -> None:
        """Act as the account's root user."""
        emulator.use(self._endpoint)

    def become_pipeline(self, stage: Stage) -> None:
        """Act in the role that deploys, as a job of the stage's environment."""
        self.become_administrator()
        token = {
            "iss": "https://token.actions.githubusercontent.com",
            "aud": "sts.amazonaws.com",
            "sub": f"repo:octo/animals:environment:{stage.name}",
        }
        parts = ({"alg": "none"}, token, 0)
        encoded = (
            base64.urlsafe_b64encode(json.dumps(part).encode()) for part in parts
        )
        answer = client("sts").assume_role_with_web_identity(
            RoleArn=stage.account()["DeployRoleArn"],
            RoleSessionName="job",
            WebIdentityToken=b".".join(encoded).decode(),
        )
        emulator.use(self._endpoint, answer["Credentials"])


@contextmanager
def emulated(folder: Path) -> Iterator[Emulator]:
    """Run an empty account on the emulator."""
    with emulator.running(folder) as endpoint:
        yield Emulator(endpoint)


_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AccessKeyId",
    "AWS_SECRET_ACCESS_KEY": "SecretAccessKey",
    "AWS_SESSION_TOKEN": "SessionToken",
}


class Account:
    """A real account, which belongs to whoever's credentials are in the environment."""

    architecture = "arm64"
    expected_failures = "aws"
    is_emulated = False

    def __init__(self) -> None:
        """Remember the administrator."""
        self._administrator = dict(os.environ)

    def become_administrator(self) -> None:
        """Act with the credentials of the start."""
        for name in {*_CREDENTIALS, "AWS_PROFILE"}:
            os.environ.pop(name, None)
        os.environ.update(self._administrator)
        boto3.setup_default_session()

    def become_pipeline(self, stage: Stage) -> None:
        """Act in the role that deploys; as no token of GitHub's is here, it trusts the account."""
        self.become_administrator()
        role = stage.account()["DeployRoleArn"]
        iam, name = client("iam"), role.rpartition("/")[2]
        policy = iam.get_role(RoleName=name)["Role"]["AssumeRolePolicyDocument"]
        account = {"AWS": client("sts").get_caller_identity()["Account"]}
        trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": account}
        policy["Statement"] = [policy["Statement"][0], trust]
        iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(policy))
        # It takes some seconds until the trust is known everywhere.
        for attempt in stamina.retry_context(
            on=ClientError, attempts=12, wait_initial=5
        ):
            with attempt:
                answer = client("sts").assume_role(
                    RoleArn=role, RoleSessionName="first-flight"
                )
        os.environ.pop("AWS_PROFILE", None)
        for variable, member in _CREDENTIALS.items():
            os.environ[variable] = answer["Credentials"][member]
        boto3.setup_default_session()


Place = Emulator | Account


@contextmanager
def empty_account(stage: Stage) -> Iterator[Account]:
    """Give the account, which has nothing of the project; remove what was made in it at the end."""
    if stage.name == "production":
        raise ValueError(
            "the first flight ends with the removal of everything: not of production"
        )
    if found := [*stacks(), *tables(), *log_groups()]:
        raise ValueError(f"this account is not empty: {', '.join(found)}")
    account = Account()
    try:
        yield account
    finally:
        account.become_administrator()
        remove(stage)


def stacks() -> list[str]:
    """Name the project's stacks."""
    pages = client("cloudformation").get_paginator("describe_stacks").paginate()
    names = [stack["StackName"] for page in pages for stack in page["Stacks"]]
    return [name for name in names if name.startswith(PREFIX)]


def tables() -> list[str]:
    """Name the project's tables."""
    pages = client("dynamodb").get_paginator("list_tables").paginate()
    return [
        name for page in pages for name in page["TableNames"] if name.startswith(PREFIX)
    ]


def log_groups() -> list[str]:
    """Name the project's log groups."""
    pages = client("logs").get_paginator("describe_log_groups")
    found = pages.paginate(logGroupNamePrefix=PREFIX)
    return [group["logGroupName"] for page in found for group in page["logGroups"]]


def remove(stage: Stage) -> None:
    """Remove the stage, its data, its logs, and what was prepared for it."""
    cloudformation, dynamodb = client("cloudformation"), client("dynamodb")
    if stage.status():
        cloudformation.update_termination_protection(
            StackName=stage.stack, EnableTerminationProtection=False
        )
        _delete_stack(cloudformation, stage.stack)
    for table in tables():
        dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
        dynamodb.get_waiter("table_exists").wait(TableName=table)
        dynamodb.delete_table(TableName=table)
    for group in log_groups():
        client("logs").delete_log_group(logGroupName=group)
    bootstrap = f"{stage.stack}-bootstrap"
    if bootstrap in stacks():
        bucket = boto3.resource("s3").Bucket(stage.account()["ArtifactBucketName"])
        _delete_stack(cloudformation, bootstrap)
        bucket.object_versions.delete()
        bucket.delete()


def _delete_stack(cloudformation: Any, name: str) -> None:
    cloudformation.delete_stack(StackName=name)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=name)
