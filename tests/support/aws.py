"""An account with a stage: moto's, and answers where moto has none; no program is started."""

import subprocess
import zipfile
from functools import cache
from pathlib import Path
from threading import Semaphore
from typing import Any
from unittest.mock import Mock

import boto3

from ops.deploy import last_good
from ops.stage import SAM, Stage

# Moto makes the default one anew for each test, which would read the services' models again.
SESSION = boto3.Session(region_name="eu-central-1")
# The stage's topic and tables are in it, because moto replaces what is in a stack at each update.
BOOTSTRAP = """
Resources:
  Topic: {Type: AWS::SNS::Topic, Properties: {TopicName: topic}}
  Bucket: {Type: AWS::S3::Bucket, Properties: {BucketName: artifacts}}
  Keys:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: keys
      AttributeDefinitions: [{AttributeName: hash, AttributeType: S}]
      KeySchema: [{AttributeName: hash, KeyType: HASH}]
      BillingMode: PAY_PER_REQUEST
  Animals:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: animals
      AttributeDefinitions:
        - {AttributeName: pk, AttributeType: S}
        - {AttributeName: id, AttributeType: N}
      KeySchema:
        - {AttributeName: pk, KeyType: HASH}
        - {AttributeName: id, KeyType: RANGE}
      BillingMode: PAY_PER_REQUEST
Outputs:
  ArtifactBucketName: {Value: artifacts}
  ExecutionRoleArn: {Value: role/execution}
  PermissionsBoundaryArn: {Value: policy/boundary}
  Repository: {Value: octo/animals}
"""
# As `sam build` and `pack` write one, but with a resource that moto knows.
TEMPLATE = """
Parameters: {MemorySize: {Type: Number, Default: 0}}
Globals: {Function: {Environment: {Variables: {}}}}
Resources: {Own: {Type: AWS::SNS::Topic}}
Outputs:
  AlarmTopicArn: {Value: "arn:aws:sns:eu-central-1:123456789012:topic"}
  AnimalsTableName: {Value: animals}
  ApiKeysTableName: {Value: keys}
  BaseUrl: {Value: "https://a/v1"}
"""
CONFIG = """
[production.deploy.parameters]
parameter_overrides = ["Stage=production", "MemorySize=1024"]
"""


def pack(commit: str) -> Path:
    """Pack an artifact of a commit as `<commit>.zip`."""
    path = Path(f"{commit}.zip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("COMMIT", commit)
        archive.writestr("template.yaml", TEMPLATE)
        archive.writestr("samconfig.toml", CONFIG)
    return path


def read_one(params: dict[str, Any], **_: object) -> dict[str, Any]:
    """Give pages of one item; ask for the table as it is now."""
    assert params["ConsistentRead"]
    return params | {"Limit": 1}


class Account:
    """An account that is prepared for production, which is not deployed yet.

    Attributes:
        answers: By operation, what AWS answers instead of moto.
        failing: Names of programs that fail, and commits whose contract suite fails.
        started: The programs that were started, with their arguments.
        asked: Counts runs of the contract suite; a deployment takes as long as two of them.
        environment: The variables of the contract suite.
        client: Makes a client, or returns the one that it made before.
        stage: The stage.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"UpdateTerminationProtection": {}}
        # By git's status, no commit is an ancestor of another.
        self.failing = {"git"}
        self.started: list[str] = []
        self.asked = Semaphore(99)
        self.environment: dict[str, str] = {}
        self.client = cache(self._client)
        self.stage = Stage("production", self.client, self._execute)
        stacks = self.client("cloudformation")
        stacks.create_stack(StackName=self.stage.stack, TemplateBody="Resources: {}")
        stacks.create_stack(
            StackName=f"{self.stage.stack}-bootstrap", TemplateBody=BOOTSTRAP
        )

    def _client(self, service: str) -> Any:
        made: Any = SESSION.client(service)  # type: ignore[call-overload]
        made.meta.events.register("before-call", self._answer)
        made.meta.events.register("provide-client-params.dynamodb.Scan", read_one)
        return made

    def runs(self) -> tuple[str, str]:
        """Name the commit that the stage runs, and the last that passed its check."""
        return self.stage.deployed()["Commit"], last_good(self.stage)

    def _answer(self, model: Any, **_: Any) -> Any:
        if model.name in self.answers:
            return Mock(status_code=200), self.answers[model.name]
        return None

    def _execute(
        self, command: list[str], cwd: Path, env: Any = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        judged = command[0]
        self.started.append(" ".join(command))
        if env:
            self.asked.release()
            self.environment, judged = env, self.runs()[0]
        done = subprocess.CompletedProcess(command, int(judged in self.failing), "")
        if "check" in options:
            done.check_returncode()
        if judged == SAM and not done.returncode:
            for _ in range(2):
                self.asked.acquire(timeout=5)
            self.client("cloudformation").update_stack(
                StackName=self.stage.stack,
                TemplateBody=(cwd / "template.yaml").read_text(),
            )
        return done
