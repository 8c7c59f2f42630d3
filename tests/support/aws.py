"""An account with a stage as a test sets it up, and the commands that are started: all recorded."""

import json
import subprocess
import zipfile
from base64 import b64encode
from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError

from tools.deployment.stage import Stage
from tools.local.service import load_template
from tools.packaging.artifact import Artifact, unpack

ACCOUNT = {
    "ArtifactBucketName": "bucket",
    "ExecutionRoleArn": "arn:aws:iam::123456789012:role/execution",
    "PermissionsBoundaryArn": "arn:aws:iam::123456789012:policy/boundary",
}
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
TABLES = load_template().tables
LAYER = "arn:aws:lambda:eu-central-1:123456789012:layer:common:7"


def pack(path: Path, commit: str, template: str = TEMPLATE) -> Artifact:
    """Pack an artifact of a commit, and unpack it."""
    files = {"COMMIT": commit, "samconfig.toml": CONFIG, "template.yaml": template}
    for code in (
        "CommonLayer",
        "CreatePetFunction",
        "GetPetFunction",
        "ListPetsFunction",
    ):
        files[f"{code}.zip"] = f"{code} of {commit}"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return unpack(path, path.with_suffix(""))


class Aws:
    """An account with one stage; the SDK checks each request, and moto answers what is not here.

    Attributes:
        answers: By `service:Operation`, an answer, an exception, or a function of the request.
        results: By the beginning of a command, its exit status and output.
        account: The stack of bootstrap.yaml; empty if there is none.
        stack: The stack of the stage; empty if there is none.
        live: What Lambda says of the version behind `live`.
        calls: What was called, in order: `service:Operation` or a command, with its arguments.
        environments: The variables that each command has got.
    """

    def __init__(self, repository: Path) -> None:
        client = cache(self._client)
        self.stage = Stage("production", client, self._execute, self._sleep)
        self.repository = repository
        self.calls: list[tuple[str, Any]] = []
        self.environments: dict[str, dict[str, str]] = {}
        self.results: dict[str, tuple[int, str]] = {}
        self.account: dict[str, Any] = {"Outputs": ACCOUNT}
        self.stack: dict[str, Any] = {}
        self.live: dict[str, Any] = {}
        self.resources = {
            "AlarmTopic": ("AWS::SNS::Topic", "topic"),
            "AnimalsTable": ("AWS::DynamoDB::Table", "animals"),
            "ApiKeysTable": ("AWS::DynamoDB::Table", "keys"),
            "CommonLayer1a2b": ("AWS::Lambda::LayerVersion", LAYER),
            "ListPetsFunction": ("AWS::Lambda::Function", "list-pets"),
            "ListPetsLogGroup": ("AWS::Logs::LogGroup", "log-of-list-pets"),
            "ListPetsRole": ("AWS::IAM::Role", "role-of-list-pets"),
        }
        self.answers: dict[str, Any] = {
            "cloudformation:DescribeStacks": self._describe_stacks,
            "cloudformation:ListStackResources": self._list_resources,
            "cloudformation:SetStackPolicy": {},
            "cloudformation:UpdateTerminationProtection": {},
            "lambda:GetAlias": {},
            "lambda:GetFunction": lambda _: {"Configuration": self.live},
        }
        client("s3").create_bucket(
            Bucket="bucket",
            CreateBucketConfiguration={"LocationConstraint": "eu-central-1"},
        )
        for name in ("AnimalsTable", "ApiKeysTable"):
            request = TABLES[name].request | {"TableName": self.resources[name][1]}
            client("dynamodb").create_table(**request)
        self.calls.clear()

    def named(self, *names: str) -> list[Any]:
        """Return the arguments of each call whose name begins with one of these."""
        return [arguments for name, arguments in self.calls if name.startswith(names)]

    def deploy(self, folder: Path, parameters: dict[str, str]) -> None:
        """Let the stack run what was packaged in a folder."""
        template = json.loads((folder / "deployed.json").read_text())
        code = sha256((folder / "ListPetsFunction.zip").read_bytes()).digest()
        layer = sha256((folder / "CommonLayer.zip").read_bytes()).digest()
        variables = template["Globals"]["Function"]["Environment"]["Variables"]
        self.live = {
            "Architectures": ["arm64"],
            "CodeSha256": b64encode(code).decode(),
            "Environment": {
                "Variables": {
                    "ANIMALS_TABLE": "animals",
                    "DEPLOYMENT": variables["DEPLOYMENT"],
                    "STAGE": self.stage.name,
                }
            },
            "Handler": "app.handler",
            "Layers": [{"Arn": LAYER}],
            "LoggingConfig": {
                "ApplicationLogLevel": "INFO",
                "LogFormat": "JSON",
                "LogGroup": "log-of-list-pets",
            },
            "MemorySize": int(parameters["MemorySize"]),
            "Role": "arn:aws:iam::123456789012:role/role-of-list-pets",
            "Runtime": "python3.13",
            "Timeout": 10,
            "TracingConfig": {"Mode": "Active"},
        }
        content = {"CodeSha256": b64encode(layer).decode()}
        self.answers["lambda:GetLayerVersionByArn"] = {"Content": content}
        outputs = {name: each["Value"] for name, each in template["Outputs"].items()}
        self.stack = {
            "EnableTerminationProtection": True,
            "Outputs": OUTPUTS | outputs,
            "Parameters": parameters,
            "StackStatus": "UPDATE_COMPLETE",
        }

    def _client(self, service: str) -> Any:
        client: Any = boto3.client(service)  # type: ignore[call-overload]
        client.meta.events.register("provide-client-params.*.*", self._record)
        client.meta.events.register("before-call.*.*", self._answer)
        return client

    def _record(self, params: Any, model: Any, context: Any, **_: Any) -> None:
        name = f"{model.service_model.service_name}:{model.name}"
        self.calls.append((name, params))
        context["call"] = name, params

    def _answer(self, context: Any, **_: Any) -> Any:
        name, params = context["call"]
        if name not in self.answers:
            return None
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        parsed = answer(params) if callable(answer) else answer
        return AWSResponse("", 200, HTTPHeaders(), None), deepcopy(parsed)

    def _describe_stacks(self, params: Any) -> Any:
        is_account = params["StackName"].endswith("-bootstrap")
        stack = self.account if is_account else self.stack
        if not stack:
            raise aws_error("ValidationError", f"Stack {params} does not exist")
        described = dict(stack)
        for kind in ("Output", "Parameter"):
            pairs = stack.get(f"{kind}s", {}).items()
            described[f"{kind}s"] = [
                {f"{kind}Key": name, f"{kind}Value": value} for name, value in pairs
            ]
        return {"Stacks": [described]}

    def _list_resources(self, params: Any) -> Any:
        self._describe_stacks(params)
        summaries = [
            {
                "LogicalResourceId": logical_id,
                "PhysicalResourceId": name,
                "ResourceType": kind,
            }
            for logical_id, (kind, name) in self.resources.items()
        ]
        return {"StackResourceSummaries": summaries}

    def _sleep(self, seconds: float) -> None:
        self.calls.append(("sleep", seconds))
        self.stack["StackStatus"] = "UPDATE_COMPLETE"

    def _execute(
        self, command: Sequence[str], cwd: Path, env: Any = None, **_: Any
    ) -> subprocess.CompletedProcess[Any]:
        program, *arguments = [Path(command[0]).name, *command[1:]]
        if arguments[:2] == ["-m", "pytest"]:
            program, *arguments = arguments[1:]
        name = f"{program} {arguments[0]}"
        self.calls.append((name, arguments))
        self.environments[name] = env
        if program == "git":
            return subprocess.run(
                command, cwd=self.repository, check=False, capture_output=True
            )
        status, output = self.results.get(name, (0, ""))
        # Neither a plan nor the account's own stack.
        deploys = {"packaged.yaml", "--no-execute-changeset"}.intersection(arguments)
        if name == "sam deploy" and deploys == {"packaged.yaml"} and not status:
            given = arguments[arguments.index("--parameter-overrides") + 1 :]
            pairs = [pair.removesuffix('"').split('="') for pair in given]
            self.deploy(cwd, dict(pairs))
        return subprocess.CompletedProcess(command, status, output, "")


def aws_error(code: str, message: str) -> ClientError:
    """Make an error as AWS answers with it."""
    return ClientError({"Error": {"Code": code, "Message": message}}, "Operation")
