"""What the pipeline asks of AWS: its calls as the rehearsal recorded them, as IAM sees them."""

import contextlib
import json
import re
from pathlib import Path

from tests.support.iam import ACCOUNT, REGION

LIST = Path(__file__).with_suffix(".txt")
_HERE = f"{REGION}:{ACCOUNT}"
# Permissions that are not named like the call.
_PERMISSIONS = {
    "apigateway:GetStage": "apigateway:GET",
    "lambda:GetLayerVersionByArn": "lambda:GetLayerVersion",
    "s3:HeadObject": "s3:GetObject",
    "s3:ListObjectsV2": "s3:ListBucket",
}
# What a call touches: the first form for which it has the parameters.
_RESOURCES = (
    f"arn:aws:apigateway:{REGION}::/restapis/{{restApiId}}/stages/{{stageName}}",
    f"arn:aws:cloudformation:{_HERE}:stack/{{StackName}}/1a2b",
    f"arn:aws:dynamodb:{_HERE}:table/{{TableName}}",
    f"arn:aws:dynamodb:{_HERE}:table/{{TargetTableName}}",
    f"arn:aws:lambda:{_HERE}:function:{{FunctionName}}:{{Qualifier}}",
    f"arn:aws:lambda:{_HERE}:function:{{FunctionName}}",
    f"arn:aws:lambda:{_HERE}:layer:{{LayerName}}:{{VersionNumber}}",
    f"arn:aws:lambda:{_HERE}:layer:{{LayerName}}",
    "arn:aws:s3:::{Bucket}/{Key}",
    "arn:aws:s3:::{Bucket}",
    "{Arn}",
    "{ResourceArn}",
    "{TopicArn}",
)
# What is made up anew each time: identifiers, versions, dates.
_RESTORED = re.compile(r"(?<=Table-)\d{14}$")
_MADE_UP = re.compile(r"[0-9A-Fa-f]{8,}(-(dirty-)?[0-9a-f]+)?|(?<=:)\d+$")


def recorded(calls: Path, stage: str) -> set[str]:
    """Return the permissions that recorded calls need, each with its resource."""
    permissions = set()
    for line in calls.read_text("utf-8").splitlines():
        service, operation, parameters = json.loads(line)
        if service == "sts":  # who asks for its own identity needs no permission
            continue
        if "ChangeSetName" in parameters:  # by its ARN, which is in no policy
            parameters.setdefault("StackName", f"animal-store-{stage}")
        call = f"{service}:{operation}"
        arn = _arn(parameters).replace(ACCOUNT, "{account}").replace(stage, "{stage}")
        arn = _RESTORED.sub("{restored}", arn)
        permissions.add(
            f"{_PERMISSIONS.get(call, call)} {_MADE_UP.sub('1a2b3c4d', arn)}"
        )
    return permissions


def listed() -> set[str]:
    """Return the list that the rehearsal compares with what it recorded."""
    return set(LIST.read_text("utf-8").splitlines())


def _arn(parameters: dict[str, str]) -> str:
    for form in _RESOURCES:
        with contextlib.suppress(KeyError):
            return form.format(**parameters)
    return "*"
