"""Where the steps are taken: on an emulator of AWS (ministack), or in a real account."""

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import stamina
import yaml
from botocore.exceptions import ClientError

from tools import ROOT
from tools.deployment.stage import Stage

LIMITATIONS = Path(__file__).with_name("emulator.yaml")
# No name on GitHub begins with a hyphen: the roles trust nobody's repository.
REPOSITORY = ["Owner=-", "OwnerId=0", "Repository=-", "RepositoryId=0"]
_ACCOUNT, _REGION = "123456789012", "eu-central-1"


class Place:
    """An account, which belongs to whoever's credentials are in the environment."""

    def __init__(self, administrator: Mapping[str, str]) -> None:
        self._administrator = administrator

    def become_administrator(self) -> None:
        """Act with the credentials of the start, in this process and its children."""
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]
        os.environ.update(self._administrator)
        boto3.setup_default_session()

    def become(self, role: str, stage: str) -> None:
        """Act in a role of bootstrap.yaml."""
        self.become_administrator()
        arn = Stage(stage).account()[f"{role}Arn"]
        credentials = _assume(arn)
        os.environ.pop("AWS_PROFILE", None)
        os.environ |= {
            "AWS_ACCESS_KEY_ID": credentials["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": credentials["SecretAccessKey"],
            "AWS_SESSION_TOKEN": credentials["SessionToken"],
        }
        boto3.setup_default_session()


def _assume(arn: str) -> Mapping[str, str]:
    """Assume a role; as no token and no MFA is here, let it trust the account."""
    iam, name = boto3.client("iam"), arn.rpartition("/")[2]
    policy = iam.get_role(RoleName=name)["Role"]["AssumeRolePolicyDocument"]
    account = {"AWS": boto3.client("sts").get_caller_identity()["Account"]}
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": account}
    policy["Statement"] = [policy["Statement"][0], trust]
    iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(policy))
    # It takes some seconds until the trust is known everywhere.
    assume = stamina.retry(on=ClientError, attempts=12, wait_initial=5)(
        boto3.client("sts").assume_role
    )
    answer = assume(RoleArn=arn, RoleSessionName="first-flight")
    return dict(answer["Credentials"])


@contextlib.contextmanager
def emulated(folder: Path) -> Iterator[Place]:
    """Run an empty emulator in a new folder for as long as the context lasts."""
    environment = ROOT / ".tools/ministack"
    # An interpreter that finds what Lambda's Python finds: the standard library.
    base = environment / "bin/python"
    subprocess.run([base, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    # Nothing of our environment: functions inherit this one. The last three keep the emulator
    # from starting a file server and a message broker, and from looking for containers.
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "GATEWAY_PORT": str(port),
        "MINISTACK_ACCOUNT_ID": _ACCOUNT,
        "MINISTACK_REGION": _REGION,
        "AWS_ACCESS_KEY_ID": _ACCOUNT,
        "AUTH": "true",  # enforce permissions
        "LOG_LEVEL": "ERROR",
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        "DOCKER_HOST": "unix:///nonexistent",
    }
    limitations = yaml.safe_load(LIMITATIONS.read_text("utf-8"))
    allowed = limitations["Allowed, although the emulator refuses it"]
    # A session of its own: Ctrl-C goes to every process of the terminal, and this one ends with
    # its input.
    with subprocess.Popen(
        [
            folder / "bin/python",
            "-I",
            Path(__file__).with_name("emulator_process.py"),
            packages,
            str(listener.fileno()),
            ROOT,
            *allowed,
        ],
        stdin=subprocess.PIPE,
        env=variables,
        start_new_session=True,
        pass_fds=[listener.fileno()],
    ) as process:
        listener.close()
        administrator = {
            "ALARM_EMAIL": "alarms@example.com",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": _ACCOUNT,  # names the root user
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "NO_PROXY": "*",
        }
        try:
            yield Place(administrator)
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=15)
            process.kill()


@contextlib.contextmanager
def empty_account(place: Place, stage: str) -> Iterator[None]:
    """Require that the account has nothing of the project, and leave it so."""
    place.become_administrator()
    if found := _found():
        raise ValueError(f"this account is not empty: {found}")
    try:
        yield
    finally:
        place.become_administrator()
        _remove(Stage(stage))
    if found := _found():
        raise ValueError(f"this stays in the account: {found}")


def parameters() -> list[str]:
    """Return the parameters of bootstrap.yaml, which leave alone what an account has for good."""
    chosen = [*REPOSITORY]
    if boto3.client("iam").list_open_id_connect_providers()[
        "OpenIDConnectProviderList"
    ]:
        chosen.append("CreateOidcProvider=false")
    if "cloudwatchRoleArn" in boto3.client("apigateway").get_account():
        chosen.append("CreateApiGatewayLoggingRole=false")
    return chosen


# Services, their operations that list, and where in the answers the names are.
_STACKS = ("cloudformation", "describe_stacks", "Stacks[].StackName")
_TABLES = ("dynamodb", "list_tables", "TableNames[]")
_LOG_GROUPS = ("logs", "describe_log_groups", "logGroups[].logGroupName")
_LAYERS = ("lambda", "list_layers", "Layers[].LayerName")
_BUCKETS = ("s3", "list_buckets", "Buckets[].Name")


def _found() -> list[str]:
    """Name what an account has of the project."""
    found = []
    for kind in (_STACKS, _TABLES, _LOG_GROUPS, _LAYERS, _BUCKETS):
        found += _find(*kind)
    return found


def _find(service: str, operation: str, query: str) -> list[str]:
    client = boto3.client(service)  # type: ignore[call-overload]
    names = client.get_paginator(operation).paginate().search(query)
    return [name for name in names if name.startswith("animal-store-")]


def _remove(stage: Stage) -> None:
    """Remove the stage, its data, its logs, and what was prepared for it."""
    cloudformation, dynamodb = boto3.client("cloudformation"), boto3.client("dynamodb")
    if stage.status():
        cloudformation.update_termination_protection(
            StackName=stage.stack, EnableTerminationProtection=False
        )
        _delete_stack(cloudformation, stage.stack)
    for table in _find(*_TABLES):
        dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
        dynamodb.get_waiter("table_exists").wait(TableName=table)
        dynamodb.delete_table(TableName=table)
        dynamodb.get_waiter("table_not_exists").wait(TableName=table)
    for group in _find(*_LOG_GROUPS):
        boto3.client("logs").delete_log_group(logGroupName=group)
    lambda_ = boto3.client("lambda")
    for layer in _find(*_LAYERS):
        versions = lambda_.get_paginator("list_layer_versions")
        for each in versions.paginate(LayerName=layer).search("LayerVersions[]"):
            lambda_.delete_layer_version(LayerName=layer, VersionNumber=each["Version"])
    bootstrap = f"{stage.stack}-bootstrap"
    if bootstrap in _find(*_STACKS):
        bucket = boto3.resource("s3").Bucket(stage.account()["ArtifactBucketName"])
        _delete_stack(cloudformation, bootstrap)
        bucket.object_versions.delete()
        bucket.delete()


def _delete_stack(cloudformation: Any, name: str) -> None:
    cloudformation.delete_stack(StackName=name)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=name)
