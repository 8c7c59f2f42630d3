"""Compare a stage with its artifact, and find what has lapsed although nobody deployed."""

import time
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import yaml

from tools.deployment.stage import TABLES, DeploymentError, Stage
from tools.deployment.template import resolve
from tools.key_table import KeyRecord, KeyTable
from tools.packaging.artifact import Artifact

_NOTICE_S = 30 * 86_400  # before a key expires
# Lambda's own level; a higher one would drop the lines of requests, and with them the metrics.
_LOGGING = {"ApplicationLogLevel": "INFO"}


def check(stage: Stage, artifact: Artifact) -> None:
    """Refuse a stage whose parameters or functions are not those of an artifact."""
    asked, used, wrong = stage.parameters(artifact.folder), stage.used_parameters(), []
    for name, value in asked.items():
        if name != "Canary" and used.get(name) != value:
            wrong.append(f"parameter {name} is {used.get(name)}, not {value}")
    resources = stage.resources()
    for function, settings in expected(stage, artifact).items():
        found = _found(stage, resources[function])
        for name, value in settings.items():
            if found[name] != value:
                wrong.append(f"{function}: {name} is {found[name]}, not {value}")
    if wrong:
        message = f"{stage.name} does not run what was asked for:"
        raise DeploymentError("\n".join([message, *wrong]))


def expected(stage: Stage, artifact: Artifact) -> dict[str, dict[str, Any]]:
    """Return what each function should be, by logical id.

    The template, its parameters and the names that CloudFormation gave say it: unlike Lambda's
    $LATEST, none of them changes with a hand on the console.
    """
    template = yaml.safe_load((artifact.folder / "template.yaml").read_text("utf-8"))
    names = stage.parameters(artifact.folder) | stage.resources()
    _, partition, _, _, account, _ = stage.caller().split(":")
    for role, name in stage.resources("AWS::IAM::Role").items():
        names[f"{role}.Arn"] = f"arn:{partition}:iam::{account}:role/{name}"
    layers = [*stage.resources("AWS::Lambda::LayerVersion").values()]
    shared, settings = template["Globals"]["Function"], {}
    variables = shared["Environment"]["Variables"]
    variables["DEPLOYMENT"] = stage.outputs().get("Deployed")
    for name, resource in template["Resources"].items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        asked = shared | resource["Properties"]
        logging = shared["LoggingConfig"] | asked["LoggingConfig"]
        settings[name] = {
            "architectures": resolve(asked["Architectures"], names),
            "code": artifact.code[name],
            "handler": asked["Handler"],
            "layers": dict.fromkeys(layers, artifact.code["CommonLayer"]),
            "logging": _LOGGING | resolve(logging, names),
            "memory": int(resolve(asked["MemorySize"], names)),
            # None where nothing is reserved, and 0 if somebody has stopped the function by hand.
            "reserved concurrency": int(names["ReservedConcurrency"]) or None,
            "role": resolve(asked["Role"], names),
            "runtime": asked["Runtime"],
            "shares of other versions": {},
            "timeout": asked["Timeout"],
            "tracing": asked.get("Tracing", "PassThrough"),
            "variables": resolve(variables, names),
        }
    return settings


def _found(stage: Stage, function: str) -> dict[str, Any]:
    """Return what the version behind `live` is."""
    aws = stage.client("lambda")
    live = aws.get_function(FunctionName=function, Qualifier="live")["Configuration"]
    concurrency = aws.get_function(FunctionName=function).get("Concurrency", {})
    alias = aws.get_alias(FunctionName=function, Name="live")
    layers = {}
    for layer in live["Layers"]:
        version = aws.get_layer_version_by_arn(Arn=layer["Arn"])
        layers[layer["Arn"]] = _hexadecimal(version["Content"]["CodeSha256"])
    routing = alias.get("RoutingConfig", {})
    return {
        "architectures": live["Architectures"],
        "code": _hexadecimal(live["CodeSha256"]),
        "handler": live["Handler"],
        "layers": layers,
        "logging": _LOGGING | live["LoggingConfig"],
        "memory": live["MemorySize"],
        "reserved concurrency": concurrency.get("ReservedConcurrentExecutions"),
        "role": live["Role"],
        "runtime": live["Runtime"],
        "shares of other versions": routing.get("AdditionalVersionWeights", {}),
        "timeout": live["Timeout"],
        "tracing": live["TracingConfig"]["Mode"],
        "variables": live["Environment"]["Variables"],
    }


def _hexadecimal(sha256: str) -> str:
    return b64decode(sha256).hex()


def lapses(stage: Stage) -> Iterator[str]:
    """Say what protects a stage no longer, or will soon stop a client."""
    if not stage.describe()["EnableTerminationProtection"]:
        yield f"{stage.stack} can be deleted: termination protection is off"
    if stage.used_parameters()["AlarmEmail"] and not _is_heard(stage):
        yield "alarms reach nobody: no subscription to their topic is confirmed"
    yield from _unprotected(stage)
    outputs, dynamodb = stage.outputs(), stage.client("dynamodb")
    animals = outputs["AnimalsTableName"]
    # In this order: a creation takes its id from the counter first.
    highest = _last(dynamodb, animals, "pet", "id")
    last = _last(dynamodb, animals, "counter", "value")
    if last < highest:
        yield f"{animals} would give ids again: its counter is at {last}, below {highest}"
    for key in ending(KeyTable(dynamodb, outputs["ApiKeysTableName"]).all()):
        day = time.strftime("%d %B %Y", time.gmtime(key.expires))
        yield f"the key {key.id} ({key.label}) expires on {day}, and its holder has no other"


def _unprotected(stage: Stage) -> Iterator[str]:
    outputs, dynamodb = stage.outputs(), stage.client("dynamodb")
    for table in TABLES:
        name = outputs[f"{table}Name"]
        description = dynamodb.describe_table(TableName=name)["Table"]
        if not description.get("DeletionProtectionEnabled"):
            yield f"{name} can be deleted: deletion protection is off"
        backups = dynamodb.describe_continuous_backups(TableName=name)
        recovery = backups["ContinuousBackupsDescription"][
            "PointInTimeRecoveryDescription"
        ]
        if recovery["PointInTimeRecoveryStatus"] != "ENABLED":
            yield f"{name} has no backups: point-in-time recovery is off"
    animals = outputs["AnimalsTableName"]
    expiry = dynamodb.describe_time_to_live(TableName=animals)["TimeToLiveDescription"]
    if (expiry["TimeToLiveStatus"], expiry.get("AttributeName")) != (
        "ENABLED",
        "expires",
    ):
        yield f"{animals} grows: idempotency records do not expire"


def _is_heard(stage: Stage) -> bool:
    topic = stage.resources()["AlarmTopic"]
    paginator = stage.client("sns").get_paginator("list_subscriptions_by_topic")
    arns = paginator.paginate(TopicArn=topic).search("Subscriptions[].SubscriptionArn")
    # Instead of an ARN, others have PendingConfirmation or Deleted.
    return any(arn.startswith("arn:") for arn in arns)


def _last(dynamodb: Any, table: str, partition: str, attribute: str) -> int:
    """Return a number of the last item of a partition, read alone; 0 if there is none."""
    answer = dynamodb.query(
        TableName=table,
        KeyConditionExpression="pk = :partition",
        ExpressionAttributeValues={":partition": {"S": partition}},
        ProjectionExpression="#attribute",
        ExpressionAttributeNames={"#attribute": attribute},
        Select="SPECIFIC_ATTRIBUTES",
        ScanIndexForward=False,
        Limit=1,
        ConsistentRead=True,
    )
    numbers = [int(item[attribute]["N"]) for item in answer["Items"] if item]
    return max(numbers, default=0)


def ending(keys: list[KeyRecord]) -> list[KeyRecord]:
    """Return the valid keys that expire within 30 days without a successor.

    A holder's keys are labelled like `bob` or `bob-2027`. A key that was issued for 30 days or
    less was meant to end, as those of a check are.
    """
    limit = time.time() + _NOTICE_S
    valid = [key for key in keys if key.state == "active"]
    lasting = {_holder(key) for key in valid if not key.expires or key.expires > limit}
    return [
        key
        for key in valid
        if key.expires
        and key.expires - key.created > _NOTICE_S
        and _holder(key) not in lasting
    ]


def _holder(key: KeyRecord) -> str:
    return key.label.rstrip("0123456789").removesuffix("-")
