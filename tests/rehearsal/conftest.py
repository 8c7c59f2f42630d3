"""The stage that the rehearsal's steps use, on an emulator of AWS or in a real account.

Without REHEARSED_STAGE, `pytest tests` collects no steps.
"""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import boto3
import pytest
from botocore.exceptions import ClientError

from ops import programs
from ops.stage import Stage
from tools import ROOT

STAGE = os.environ.get("REHEARSED_STAGE", "")
IS_ON_AWS = "FIRST_FLIGHT" in os.environ
collect_ignore_glob = [] if STAGE else ["test_*"]
# A rehearsal has neither GitHub's tokens nor MFA, so the roles trust their own account.
_TRUST = """{"Version": "2012-10-17", "Statement": [
  {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "ACCOUNT"}}]}"""


@contextmanager
def emulator(folder: Path) -> Iterator[None]:
    """Run an empty emulator in a new folder; act as its administrator."""
    python = ROOT / ".tools/ministack/bin/python"
    program = Path(__file__).with_name("emulator_process.py")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        # In a session of its own, the emulator gets no Ctrl-C from the terminal. It ends when its
        # stdin ends.
        process = subprocess.Popen(
            [python, "-I", program, str(listener.fileno())],
            stdin=subprocess.PIPE,
            # The functions inherit these variables, so the emulator gets no others.
            env={
                "PATH": "/usr/bin:/bin",
                "TMPDIR": str(folder),
                "GATEWAY_PORT": str(port),
                "AUTH": "true",  # enforce permissions
                "LOG_LEVEL": "ERROR",
            },
            start_new_session=True,
            pass_fds=[listener.fileno()],
        )
    variables = {
        "ALARM_EMAIL": "alarms@example.com",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "000000000000",  # names the root user
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_SESSION_TOKEN": "",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "NO_PROXY": "*",
    }
    # At the end of the block, Popen closes the emulator's stdin and waits for it to end.
    with process, mock.patch.dict(os.environ, variables):
        yield


def credentials(stage: Stage, role: str) -> dict[str, str]:
    """Let a role trust its account; return the environment variables of a session in that role."""
    arn, sts = stage.bootstrap_outputs[f"{role}Arn"], stage.client("sts")
    stage.client("iam").update_assume_role_policy(
        RoleName=arn.rpartition("/")[2],
        PolicyDocument=_TRUST.replace("ACCOUNT", arn.split(":")[4]),
    )
    time.sleep(30 * IS_ON_AWS)  # until the trust is known everywhere
    role_session = sts.assume_role(RoleArn=arn, RoleSessionName="rehearsal")
    temporary = role_session["Credentials"]
    return {
        "AWS_ACCESS_KEY_ID": temporary["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": temporary["SecretAccessKey"],
        "AWS_SESSION_TOKEN": temporary["SessionToken"],
    }


def tables() -> list[Any]:
    """Return the tables of all stages in the account."""
    tables = boto3.resource("dynamodb").tables.all()
    return [table for table in tables if table.name.startswith("animal-store-")]


def remove_stack(name: str) -> None:
    """Delete a stack, even if it is protected; a missing stack is no error."""
    client = boto3.client("cloudformation")
    with suppress(ClientError):  # the stack does not exist
        client.update_termination_protection(
            StackName=name, EnableTerminationProtection=False
        )
    client.delete_stack(StackName=name)
    client.get_waiter("stack_delete_complete").wait(StackName=name)


def remove_tables_and_bucket() -> None:
    """Delete the tables, with all data, and the bucket of artifacts."""
    for table in tables():
        table.update(DeletionProtectionEnabled=False)
        table.wait_until_exists()
        table.delete()
    for bucket in boto3.resource("s3").buckets.filter(
        Prefix="animal-store-", BucketRegion=boto3.Session().region_name
    ):
        bucket.object_versions.delete()
        bucket.delete()


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Act as an empty account's administrator; at the end, delete stacks, tables and bucket."""
    # The callbacks run in reverse order, and each runs even if another fails. For example, a vault
    # that has a backup prevents the deletion of the bootstrap stack.
    with ExitStack() as cleanup:
        if not IS_ON_AWS:
            cleanup.enter_context(emulator(tmp_path_factory.mktemp("emulator")))
        assert tables() == [], "the account has a stage already"
        cleanup.callback(remove_stack, f"animal-store-{STAGE}-bootstrap")
        cleanup.callback(remove_tables_and_bucket)
        cleanup.callback(remove_stack, f"animal-store-{STAGE}")
        yield


@pytest.fixture(autouse=True)
def stage(
    account: None,  # noqa: ARG001
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Stage]:
    """Run a step in the role that it is marked with, or else in DeployRole."""
    marker = request.node.get_closest_marker("role")
    role = marker.args[0] if marker else "DeployRole"
    variables = {} if role == "administrator" else credentials(Stage(STAGE), role)
    if not IS_ON_AWS:
        failures = "tests/contract/expected_failures/rehearsal.yaml"
        monkeypatch.setattr(programs, "EXPECTED_FAILURES", failures)
    with mock.patch.dict(os.environ, variables):
        # The SDK's default session stays the administrator's, so the stage gets another one.
        yield Stage(STAGE, boto3.Session().client)
