"""An account with a stage, and what is asked of it: calls, commands and lines, in one session."""

import json
import os
import re
import subprocess
import zipfile
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import yaml
from botocore.exceptions import ClientError

from tests.support.handlers import ANIMALS, API_KEYS, DATABASE, empty_store
from tools.deployment.stage import Stage
from tools.key_table import KeyTable
from tools.packaging.artifact import Artifact, unpack

# As `sam build` writes one.
TEMPLATE = """
Parameters:
  Stage: {Type: String}
  AlarmEmail: {Default: ""}
  Canary: {Default: "true"}
  CertificateArn: {Default: ""}
  MemorySize: {Default: 512}
  PermissionsBoundary: {Default: ""}
  ReservedConcurrency: {Default: 0}
Globals:
  Function:
    Architectures: [arm64]
    Environment: {Variables: {STAGE: {Ref: Stage}}}
    Handler: app.handler
    LoggingConfig: {LogFormat: JSON}
    MemorySize: {Ref: MemorySize}
    Runtime: python3.13
    Timeout: 10
Resources:
  ListPetsFunction:
    Type: AWS::Serverless::Function
    Properties:
      LoggingConfig: {LogGroup: {Ref: ListPetsLogGroup}}
      Role: {"Fn::GetAtt": [ListPetsRole, Arn]}
  ListPetsRole: {Type: AWS::IAM::Role}
Outputs: {}
"""
CONFIG = """
[production.deploy.parameters]
parameter_overrides = ["Stage=production", "MemorySize=1024"]
[staging.deploy.parameters]
parameter_overrides = ["Stage=staging"]
"""
# Of a stage that is as it should be; a table may have an answer of its own.
ANSWERS = """
cloudformation:ListStackResources:
  StackResourceSummaries:
    - {LogicalResourceId: AlarmTopic, PhysicalResourceId: topic, ResourceType: Any}
    - LogicalResourceId: ListPetsFunction
      PhysicalResourceId: list-pets
      ResourceType: AWS::Lambda::Function
    - LogicalResourceId: ListPetsLogGroup
      PhysicalResourceId: log-of-list-pets
      ResourceType: AWS::Logs::LogGroup
    - LogicalResourceId: ListPetsRole
      PhysicalResourceId: role-of-list-pets
      ResourceType: AWS::IAM::Role
dynamodb:DescribeContinuousBackups:
  ContinuousBackupsDescription:
    PointInTimeRecoveryDescription: {PointInTimeRecoveryStatus: ENABLED}
dynamodb:DescribeTable: {Table: {DeletionProtectionEnabled: true}}
dynamodb:DescribeTimeToLive:
  TimeToLiveDescription: {TimeToLiveStatus: ENABLED, AttributeName: expires}
lambda:GetAlias: {Name: live}
lambda:GetFunction:
  Configuration:
    Architectures: [arm64]
    Handler: app.handler
    Layers: [{Arn: "arn:aws:lambda:eu-central-1:123456789012:layer:common:7"}]
    LoggingConfig: {LogFormat: JSON, LogGroup: log-of-list-pets, ApplicationLogLevel: INFO}
    Role: arn:aws:iam::123456789012:role/role-of-list-pets
    Runtime: python3.13
    Timeout: 10
sns:ListSubscriptionsByTopic:
  Subscriptions:
    - SubscriptionArn: PendingConfirmation
    - SubscriptionArn: arn:aws:sns:eu-central-1:123456789012:topic:2
sts:GetCallerIdentity: {Arn: "arn:aws:iam::123456789012:eve"}
"""
ACCOUNT = {
    "ArtifactBucketName": "bucket",
    "ExecutionRoleArn": "role/execution",
    "PermissionsBoundaryArn": "policy/boundary",
}
OUTPUTS = {
    "AnimalsTableName": ANIMALS,
    "ApiKeysTableName": API_KEYS,
    "BaseUrl": "https://a/v1",
}
# The commits of main, in order.
MAIN = "oldest older newer newest origin/main"
# Asked again and again, and harmless.
NOT_SHOWN = {"DescribeStacks", "GetCallerIdentity"}


def pack(commit: str, template: str = TEMPLATE) -> Artifact:
    """Pack an artifact of a commit as `<commit>.zip`, and unpack it."""
    files = {"COMMIT": commit, "samconfig.toml": CONFIG, "template.yaml": template}
    for code in ("CommonLayer", *re.findall(r"\w+Function(?=:)", template)):
        files[f"{code}.zip"] = f"{code} of {commit}"
    path = Path(f"{commit}.zip")
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return unpack(path, path.with_suffix(""))


def record(params: Any, model: Any, context: Any, **_: Any) -> None:
    """Note a call."""
    name = f"{model.service_model.service_name}:{model.name}"
    context["call"] = name, params
    if model.name not in NOT_SHOWN:
        words = [each for each in params.values() if isinstance(each, str | int)]
        Aws.current.note(" ".join(map(str, [name, *words])))


def answer(context: Any, **_: Any) -> Any:
    """Answer a call; None lets the store do so."""
    name, params = context["call"]
    answers = Aws.current.answers
    found = answers.get(f"{name} {params.get('TableName')}", answers.get(name, {}))
    if callable(found):
        found = found(params)
    if isinstance(found, Exception):
        raise found
    if name.startswith("dynamodb:") and not found:
        return None
    return SimpleNamespace(status_code=200), found or {}


@cache
def client(service: str) -> Any:
    """Make a client, once, because it takes a tenth of a second: it checks each request."""
    made: Any = boto3.client(service, "eu-central-1")  # type: ignore[call-overload]
    if service == "dynamodb":
        DATABASE.attach(made)
    events = made.meta.events
    events.register("provide-client-params", record)
    events.register("before-call", answer)
    return made


class Aws:
    """An account with one stage, whose tables are the store of the tests.

    Attributes:
        account: The outputs of bootstrap.yaml's stack.
        answers: By `service:Operation`, or that and a table, an answer, an error or a function
            of the request; an empty answer where nothing is set.
        current: The account of the test that runs.
        keys: The table of API keys.
        lines: What was called, started and printed.
        last: What is read of the last item in each partition of the table of animals.
        objects: What the bucket has, by key, the oldest first.
        results: By program and first argument, or first two, its exit status and output.
        stack: What CloudFormation says of the stage; empty if it has no stack.
    """

    current: "Aws"

    def __init__(self, printed: Callable[[], str]) -> None:
        empty_store()
        Aws.current = self
        self.stage = Stage("production", client, self._execute, self._sleep)
        self.keys = KeyTable(client("dynamodb"), API_KEYS)
        self.account = ACCOUNT
        self.stack: dict[str, Any] = {}
        self.last = {"pet": {"id": {"N": "10"}}, "counter": {"value": {"N": "10"}}}
        self.objects: dict[str, bytes] = {}
        self.results: dict[str, tuple[int, str]] = {}
        self.answers: dict[str, Any] = yaml.safe_load(ANSWERS) | {
            "cloudformation:DescribeStacks": self._describe_stacks,
            "dynamodb:Query": self._query,
            "s3:GetObject": lambda asked: {"Body": BytesIO(self.objects[asked["Key"]])},
            "s3:ListObjectsV2": self._list_objects,
            "s3:PutObject": self._put_object,
        }
        self.lines: list[str] = []
        self.printed = printed

    def session(self) -> str:
        """Return what was called, started and printed, and forget it.

        Equal numbers stand for equal keys and digests. Variables stand before a command, and after
        `env -i` all that it has.
        """
        self.note()
        text = "\n".join(self.lines)
        self.lines.clear()
        hidden = re.findall(r"animal_test_\w+|[0-9a-f]{64}", text)
        for number, secret in enumerate(dict.fromkeys(hidden), 1):
            text = text.replace(secret, f"#{number}")
        return f"{text}\n" if text else ""

    def changed(self) -> str:
        """Tell what has changed something first; empty if nothing has."""
        pattern = r"(?m)^(\$ .*\bsam |cloudformation:[CSU]|\w+:Put).*"
        found = re.search(pattern, self.session())
        return found[0] if found else ""

    def note(self, *line: str) -> None:
        """Add a line after what was printed."""
        self.lines += [*self.printed().splitlines(), *line]

    def _describe_stacks(self, asked: Any) -> Any:
        is_account = asked["StackName"].endswith("-bootstrap")
        stack = {"Outputs": self.account} if is_account else self.stack
        if not any(stack.values()):
            return aws_error("ValidationError", "The stack does not exist")
        described = dict(stack)
        for kind in ("Output", "Parameter"):
            described[f"{kind}s"] = [
                {f"{kind}Key": name, f"{kind}Value": value}
                for name, value in stack.get(f"{kind}s", {}).items()
            ]
        return {"Stacks": [described]}

    def _query(self, asked: Any) -> Any:
        partition = asked["ExpressionAttributeValues"][":partition"]["S"]
        return {"Items": [self.last[partition]]}

    def _put_object(self, asked: Any) -> None:
        self.objects[asked["Key"]] = asked.get("Body", BytesIO()).read()

    def _list_objects(self, asked: Any) -> Any:
        """Give a page of one object."""
        at, contents = datetime(2027, 1, 30, tzinfo=UTC), []
        for key in self.objects:
            at += timedelta(hours=1)
            if key.startswith(asked["Prefix"]):
                contents.append({"Key": key, "LastModified": at})
        number = int(asked.get("ContinuationToken", 0))
        more = {"IsTruncated": True, "NextContinuationToken": str(number + 1)}
        page = {"Contents": contents[number : number + 1]} if contents else {}
        return page | more if contents[number + 1 :] else page

    def _sleep(self, seconds: float) -> None:
        self.note(f"sleep {seconds}")
        self.stack["StackStatus"] = "UPDATE_COMPLETE"

    def _execute(
        self, command: Sequence[str], cwd: Path, env: Any = os.environ, **_: Any
    ) -> subprocess.CompletedProcess[Any]:
        words = [re.sub("^/.*/", "", each) for each in command]
        if words[1] == "-m":  # of this Python
            words = words[2:]
        line, start, own = " ".join(words), "$ env -i", env.items()
        if os.environ.items() <= own:
            start, own = "$", own - os.environ.items()
        variables = [f"{name}={value}" for name, value in sorted(own)]
        self.note(" ".join([start, *variables, line]))
        result = self.results.get(" ".join(words[:2]), (0, ""))
        status, output = self.results.get(" ".join(words[:3]), result)
        if words[0] == "git":
            older, newer = words[-2:]
            status = int(older not in f"{MAIN.partition(newer)[0]}{newer}".split())
        deploys = (
            "sam deploy --template-file packaged.yaml (?!.*--no-execute-changeset)"
        )
        if re.match(deploys, line) and not status:
            self._deploy(cwd, dict(re.findall(r'(\w+)="(.*?)"', line)))
        return subprocess.CompletedProcess(command, status, output, "")

    def _deploy(self, folder: Path, parameters: dict[str, str]) -> None:
        """Let the stack run what was packaged in a folder."""
        template = json.loads((folder / "deployed.json").read_text())
        variables = template["Globals"]["Function"]["Environment"]["Variables"]
        live = self.answers["lambda:GetFunction"]["Configuration"]
        live["CodeSha256"] = checksum(folder / "ListPetsFunction.zip")
        live["Environment"] = {"Variables": variables | {"STAGE": parameters["Stage"]}}
        live["MemorySize"] = int(parameters["MemorySize"])
        layer = {"CodeSha256": checksum(folder / "CommonLayer.zip")}
        self.answers["lambda:GetLayerVersionByArn"] = {"Content": layer}
        outputs = {name: each["Value"] for name, each in template["Outputs"].items()}
        self.stack = {
            "EnableTerminationProtection": True,
            "Outputs": OUTPUTS | outputs,
            "Parameters": parameters,
            "StackStatus": "UPDATE_COMPLETE",
        }


def checksum(path: Path) -> str:
    """Compute what Lambda calls CodeSha256."""
    return b64encode(sha256(path.read_bytes()).digest()).decode()


def aws_error(code: str, message: str) -> ClientError:
    """Make an error as AWS answers with it."""
    return ClientError({"Error": {"Code": code, "Message": message}}, "Operation")
