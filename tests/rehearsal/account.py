"""Where the steps are taken: on an emulator of AWS (ministack), or in a real account."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import stamina
import yaml
from botocore.exceptions import ClientError

from tools import ROOT
from tools.deployment.stage import Stage

LIMITATIONS = Path(__file__).with_name("emulator.yaml")
_ACCOUNT = "123456789012"


def become(administrator: dict[str, str], stage: Stage, role: str) -> None:
    """Act in a role of bootstrap.yaml; as no token and no MFA is here, let it trust the account."""
    os.environ |= administrator
    boto3.setup_default_session()
    if role == "administrator":
        return
    arn, iam, sts = (
        stage.account()[f"{role}Arn"],
        boto3.client("iam"),
        boto3.client("sts"),
    )
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole"}
    trust |= {"Principal": {"AWS": sts.get_caller_identity()["Account"]}}  # type: ignore[dict-item]
    policy = {"Version": "2012-10-17", "Statement": [trust]}
    name = arn.rpartition("/")[2]
    iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(policy))
    # It takes some seconds until the trust is known everywhere.
    assume = stamina.retry(on=ClientError, attempts=12, wait_initial=5)(sts.assume_role)
    credentials = assume(RoleArn=arn, RoleSessionName="rehearsal")["Credentials"]
    os.environ |= {
        "AWS_ACCESS_KEY_ID": credentials["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": credentials["SecretAccessKey"],
        "AWS_SESSION_TOKEN": credentials["SessionToken"],
    }
    boto3.setup_default_session()


@contextmanager
def emulator(folder: Path) -> Iterator[dict[str, str]]:
    """Run an empty emulator in a new folder; give the environment of its administrator."""
    environment = ROOT / ".tools/ministack"
    # An interpreter that finds what Lambda's Python finds: the standard library.
    base = environment / "bin/python"
    subprocess.run([base, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    limitations = yaml.safe_load(LIMITATIONS.read_text("utf-8"))
    allowed = limitations["Allowed, although the emulator refuses it"]
    program = Path(__file__).with_name("emulator_process.py")
    command: list[str | Path] = [
        folder / "bin/python",
        "-I",
        program,
        packages,
        str(listener.fileno()),
        ROOT,
    ]
    # A session of its own: Ctrl-C goes to every process of the terminal, and this one ends with
    # its input.
    process = subprocess.Popen(
        [*command, *allowed],
        stdin=subprocess.PIPE,
        # Nothing of our environment: functions inherit this one. The last three keep the
        # emulator from starting a file server and a message broker, and from looking for
        # containers.
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "LANG": "C.UTF-8",
            "GATEWAY_PORT": str(port),
            "MINISTACK_ACCOUNT_ID": _ACCOUNT,
            "MINISTACK_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": _ACCOUNT,
            "AUTH": "true",  # enforce permissions
            "LOG_LEVEL": "ERROR",
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
            "DOCKER_HOST": "unix:///nonexistent",
        },
        start_new_session=True,
        pass_fds=[listener.fileno()],
    )
    listener.close()
    try:
        yield {
            "ALARM_EMAIL": "alarms@example.com",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": _ACCOUNT,  # names the root user
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_SESSION_TOKEN": "",
            "AWS_DEFAULT_REGION": "eu-central-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "EXPECTED_FAILURES": "tests/contract/expected_failures/rehearsal.yaml",
            "NO_PROXY": "*",
            "SAM_CLI_TELEMETRY": "0",
        }
    finally:
        process.communicate(timeout=15)


# Services, their operations that list, and where in the answers the names are.
_STACKS = ("cloudformation", "describe_stacks", "Stacks[].StackName")
_TABLES = ("dynamodb", "list_tables", "TableNames[]")
_LOG_GROUPS = ("logs", "describe_log_groups", "logGroups[].logGroupName")
_BUCKETS = ("s3", "list_buckets", "Buckets[].Name")


def left() -> list[str]:
    """Name what an account has of the project."""
    return [*_find(*_STACKS), *_find(*_TABLES), *_find(*_LOG_GROUPS), *_find(*_BUCKETS)]


def _find(service: str, operation: str, query: str) -> list[str]:
    client = boto3.client(service)  # type: ignore[call-overload]
    names = client.get_paginator(operation).paginate().search(query)
    return [name for name in names if name.startswith("animal-store-")]


def remove() -> None:
    """Remove all stages, their data, their logs, and what was prepared for them."""
    cloudformation, dynamodb = boto3.client("cloudformation"), boto3.client("dynamodb")
    for stack in sorted(_find(*_STACKS)):  # a stage before its bootstrap
        cloudformation.update_termination_protection(
            StackName=stack, EnableTerminationProtection=False
        )
        cloudformation.delete_stack(StackName=stack)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack)
    for table in _find(*_TABLES):
        dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
        dynamodb.get_waiter("table_exists").wait(TableName=table)
        dynamodb.delete_table(TableName=table)
        dynamodb.get_waiter("table_not_exists").wait(TableName=table)
    for group in _find(*_LOG_GROUPS):
        boto3.client("logs").delete_log_group(logGroupName=group)
    functions = boto3.client("lambda")
    for layer in _find("lambda", "list_layers", "Layers[].LayerName"):
        versions = functions.get_paginator("list_layer_versions")
        for each in versions.paginate(LayerName=layer).search("LayerVersions[]"):
            functions.delete_layer_version(
                LayerName=layer, VersionNumber=each["Version"]
            )
    for name in _find(*_BUCKETS):
        bucket = boto3.resource("s3").Bucket(name)
        bucket.object_versions.delete()
        bucket.delete()
