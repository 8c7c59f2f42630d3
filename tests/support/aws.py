"""An account with a stage, and what is asked of it: calls, commands and lines, in one session."""

import json
import os
import re
import subprocess
import textwrap
import zipfile
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError

from tools.deployment.stage import Stage
from tools.packaging.artifact import Artifact, unpack

ARN = "arn:aws:iam::123456789012"
# As `sam build` writes one.
TEMPLATE = """
Parameters:
  Stage: {Type: String}
  AlarmEmail: {Default: ""}
  Canary: {Default: "true"}
  MemorySize: {Default: 512}
  PermissionsBoundary: {Default: ""}
  ReservedConcurrency: {Default: 0}
Globals:
  Function:
    Architectures: [arm64]
    Environment:
      Variables: {ANIMALS_TABLE: {Ref: AnimalsTable}, STAGE: {Ref: Stage}}
    Handler: app.handler
    LoggingConfig: {LogFormat: JSON}
    MemorySize: {Ref: MemorySize}
    Runtime: python3.13
    Timeout: 10
    Tracing: Active
Resources:
  AnimalsTable: {Type: AWS::DynamoDB::Table}
  ListPetsFunction:
    Type: AWS::Serverless::Function
    Properties:
      LoggingConfig: {LogGroup: {Ref: ListPetsLogGroup}}
      Role: {"Fn::GetAtt": [ListPetsRole, Arn]}
Outputs: {}
"""
CONFIG = """
[production.deploy.parameters]
parameter_overrides = ["Stage=production", "MemorySize=1024"]
[staging.deploy.parameters]
parameter_overrides = ["Stage=staging"]
"""
OUTPUTS = {
    "AnimalsTableName": "animals",
    "ApiKeysTableName": "keys",
    "BaseUrl": "https://a/v1",
}
RESOURCES = """
AlarmTopic topic AWS::SNS::Topic
AnimalsTable animals AWS::DynamoDB::Table
CommonLayer1a2b arn:aws:lambda:eu-central-1:123456789012:layer:common:7 AWS::Lambda::LayerVersion
ListPetsFunction list-pets AWS::Lambda::Function
ListPetsLogGroup log-of-list-pets AWS::Logs::LogGroup
ListPetsRole role-of-list-pets AWS::IAM::Role
"""
# The commits of main, in order.
MAIN = ["older", "newer", "origin/main"]
# Asked again and again, and harmless.
NOT_SHOWN = {"DescribeStacks", "Scan", "GetCallerIdentity"}
_WRAPPED = textwrap.TextWrapper(
    88, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
)
CHANGING = (
    "$ SAM_CLI_TELEMETRY=0 sam",
    "cloudformation:Cancel",
    "cloudformation:Set",
    "cloudformation:Update",
    "dynamodb:PutItem",
    "s3:PutObject",
)


def pack(commit: str, template: str = TEMPLATE) -> Artifact:
    """Pack an artifact of a commit as `<commit>.zip`, and unpack it."""
    files = {"COMMIT": commit, "samconfig.toml": CONFIG, "template.yaml": template}
    for code in (
        "CommonLayer",
        "CreatePetFunction",
        "GetPetFunction",
        "ListPetsFunction",
    ):
        files[f"{code}.zip"] = f"{code} of {commit}"
    path = Path(f"{commit}.zip")
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return unpack(path, path.with_suffix(""))


@cache
def sdk(service: str) -> Any:
    """Make a client, once, because it takes a tenth of a second: it checks each request."""
    session = boto3.Session("id", "secret", region_name="eu-central-1")
    return session.client(service)  # type: ignore[call-overload]


def words(value: Any) -> str:
    """Write the values of some arguments, one after the other."""
    if isinstance(value, dict):
        value = list(value.values())
    return " ".join(map(words, value)) if isinstance(value, list) else str(value)


class Aws:
    """An account with one stage.

    Attributes:
        answers: By `service:Operation`, or that and a table, an answer, an error or a function
            of the request; an empty answer where nothing is set.
        results: By program and first argument, its exit status and output.
        account, stack: The stacks of bootstrap.yaml and of the stage; empty if there is none.
        keys: The items of the table of keys, by hash.
        last: A number of the last item in each partition of the table of animals.
        objects: What the bucket has, by key, the oldest first.
    """

    def __init__(self, printed: Callable[[], str]) -> None:
        self.stage = Stage("production", self._client, self._execute, self._sleep)
        self.printed = printed
        self.lines: list[str] = []
        self.results: dict[str, tuple[int, str]] = {}
        outputs = {
            "ArtifactBucketName": "bucket",
            "ExecutionRoleArn": f"{ARN}:role/execution",
            "PermissionsBoundaryArn": f"{ARN}:policy/boundary",
        }
        self.account: dict[str, Any] = {"Outputs": outputs}
        self.stack: dict[str, Any] = {}
        self.resources = [line.split() for line in RESOURCES.split("\n") if line]
        self.keys: dict[str, Any] = {}
        self.last: dict[str, Any] = {}
        self.objects: dict[str, bytes] = {}
        self.answers: dict[str, Any] = {
            "cloudformation:DescribeStacks": self._describe_stacks,
            "cloudformation:ListStackResources": self._list_resources,
            "dynamodb:PutItem": self._put_key,
            "dynamodb:Query": self._query,
            "dynamodb:Scan": lambda _: {"Items": [*self.keys.values()]},
            "dynamodb:UpdateItem": self._revoke,
            "s3:GetObject": lambda asked: {"Body": BytesIO(self.objects[asked["Key"]])},
            "s3:HeadObject": lambda asked: {
                "ContentLength": len(self.objects[asked["Key"]]),
                "ETag": "",
            },
            "s3:ListObjectsV2": self._list_objects,
            "s3:PutObject": self._put_object,
            "sts:GetCallerIdentity": {"Account": "123456789012", "Arn": f"{ARN}:eve"},
        }

    def session(self) -> str:
        """Return what was called, started and printed, and forget it.

        Equal numbers stand for equal keys and digests. Variables stand before a command, and after
        `env -i` all that it has.
        """
        self._note()
        text = "\n".join(self.lines)
        self.lines.clear()
        hidden = re.findall(r"animal_test_\w+|[0-9a-f]{64}", text)
        for number, secret in enumerate(dict.fromkeys(hidden), 1):
            text = text.replace(secret, f"#{number}")
        lines = re.sub(r"\b\d{10}\b", "TIME", text).splitlines()
        return "".join(f"{_WRAPPED.fill(line)}\n" for line in lines)

    def changes(self) -> list[str]:
        """Name what has changed something."""
        self._note()
        return [line for line in self.lines if line.startswith(CHANGING)]

    def deploy(self, folder: Path, parameters: dict[str, str]) -> None:
        """Let the stack run what was packaged in a folder."""
        template = json.loads((folder / "deployed.json").read_text())
        variables = template["Globals"]["Function"]["Environment"]["Variables"]
        code, layer = (
            b64encode(sha256((folder / name).read_bytes()).digest()).decode()
            for name in ("ListPetsFunction.zip", "CommonLayer.zip")
        )
        live = {
            "Architectures": ["arm64"],
            "CodeSha256": code,
            "Environment": {
                "Variables": variables
                | {"ANIMALS_TABLE": "animals", "STAGE": self.stage.name}
            },
            "Handler": "app.handler",
            "Layers": [{"Arn": self.resources[2][1]}],
            "LoggingConfig": {"LogFormat": "JSON", "LogGroup": "log-of-list-pets"},
            "MemorySize": int(parameters["MemorySize"]),
            "Role": f"{ARN}:role/role-of-list-pets",
            "Runtime": "python3.13",
            "Timeout": 10,
            "TracingConfig": {"Mode": "Active"},
        }
        self.answers["lambda:GetFunction"] = {"Configuration": live}
        self.answers["lambda:GetLayerVersionByArn"] = {"Content": {"CodeSha256": layer}}
        outputs = {name: each["Value"] for name, each in template["Outputs"].items()}
        self.stack = {
            "EnableTerminationProtection": True,
            "Outputs": OUTPUTS | outputs,
            "Parameters": parameters,
            "StackStatus": "UPDATE_COMPLETE",
        }

    def _note(self, *line: str) -> None:
        self.lines += [*self.printed().splitlines(), *line]

    def _client(self, service: str) -> Any:
        events = sdk(service).meta.events
        for event, handler in (
            ("provide-client-params", self._record),
            ("before-call", self._answer),
        ):
            events.unregister(event, unique_id=event)  # of an earlier test
            events.register(event, handler, unique_id=event)
        return sdk(service)

    def _record(self, params: Any, model: Any, context: Any, **_: Any) -> None:
        name = f"{model.service_model.service_name}:{model.name}"
        context["call"] = name, params
        if model.name not in NOT_SHOWN:
            shown = {key: params[key] for key in params if key != "Body"}
            self._note(f"{name} {words(shown)}")

    def _answer(self, context: Any, **_: Any) -> Any:
        name, params = context["call"]
        of_table = f"{name} {params.get('TableName')}"
        answer = self.answers.get(of_table, self.answers.get(name, {}))
        if callable(answer):
            answer = answer(params)
        if isinstance(answer, Exception):
            raise answer
        return AWSResponse("", 200, HTTPHeaders(), None), answer

    def _describe_stacks(self, params: Any) -> Any:
        is_account = params["StackName"].endswith("-bootstrap")
        stack = self.account if is_account else self.stack
        if not stack:
            return aws_error("ValidationError", f"Stack {params} does not exist")
        described = dict(stack)
        for kind in ("Output", "Parameter"):
            described[f"{kind}s"] = [
                {f"{kind}Key": name, f"{kind}Value": value}
                for name, value in stack.get(f"{kind}s", {}).items()
            ]
        return {"Stacks": [described]}

    def _list_resources(self, _: Any) -> Any:
        names = ("LogicalResourceId", "PhysicalResourceId", "ResourceType")
        return {
            "StackResourceSummaries": [
                dict(zip(names, each, strict=True)) for each in self.resources
            ]
        }

    def _put_key(self, asked: Any) -> None:
        self.keys[asked["Item"]["hash"]["S"]] = asked["Item"]

    def _revoke(self, asked: Any) -> Any:
        item = self.keys[asked["Key"]["hash"]["S"]]
        item["revoked"] = asked["ExpressionAttributeValues"][":now"]
        return {"Attributes": item}

    def _query(self, asked: Any) -> Any:
        partition = asked["ExpressionAttributeValues"][":partition"]["S"]
        attribute = asked["ExpressionAttributeNames"]["#attribute"]
        number = self.last.get(partition)
        return {"Items": [{attribute: {"N": number}} if number else {}]}

    def _put_object(self, asked: Any) -> Any:
        body = asked.get("Body")
        self.objects[asked["Key"]] = body.read() if body else b""
        return {}

    def _list_objects(self, asked: Any) -> Any:
        contents = []
        for hours, key in enumerate(self.objects):
            if key.startswith(asked["Prefix"]):
                at = datetime(2027, 1, 30, tzinfo=UTC) + timedelta(hours=hours)
                contents.append({"Key": key, "LastModified": at})
        return {"Contents": contents}

    def _sleep(self, seconds: float) -> None:
        self._note(f"sleep {seconds}")
        self.stack["StackStatus"] = "UPDATE_COMPLETE"

    def _execute(
        self, command: Sequence[str], cwd: Path, env: Any = None, **_: Any
    ) -> subprocess.CompletedProcess[Any]:
        program, *arguments = (
            Path(each).name if each.startswith("/") else each for each in command
        )
        if arguments[0] == "-m":
            program, *arguments = arguments[1:]
        variables = dict(env or os.environ)
        inherits = os.environ.items() <= variables.items()
        ours = os.environ.items() if inherits else ()
        own = [f"{name}={value}" for name, value in sorted(variables.items() - ours)]
        start = ["$"] if inherits else ["$ env -i"]
        self._note(" ".join([*start, *own, program, *arguments]))
        status, output = self.results.get(f"{program} {arguments[0]}", (0, ""))
        if program == "git":
            older, newer = arguments[-2:]
            known = MAIN.index(newer) + 1 if newer in MAIN else 0
            status = int(older not in MAIN[:known])
        # Neither a plan nor the account's own stack.
        deploys = {"packaged.yaml", "--no-execute-changeset"}.intersection(arguments)
        if arguments[0] == "deploy" and deploys == {"packaged.yaml"} and not status:
            given = arguments[arguments.index("--parameter-overrides") + 1 :]
            pairs = [pair.removesuffix('"').split('="') for pair in given]
            self.deploy(cwd, dict(pairs))
        return subprocess.CompletedProcess(command, status, output, "")


def aws_error(code: str, message: str) -> ClientError:
    """Make an error as AWS answers with it."""
    return ClientError({"Error": {"Code": code, "Message": message}}, "Operation")
