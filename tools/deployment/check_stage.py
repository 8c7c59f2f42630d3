"""Compare a stage with its artifact, and find what has lapsed although nobody deployed."""

import time
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from tools.deployment.stage import TABLES, DeploymentError, Stage
from tools.deployment.template import resolve
from tools.key_table import KeyRecord, KeyTable
from tools.packaging.artifact import Artifact

_NOTICE_S = 30 * 86_400  # before a key expires
# Settings of a function that Lambda names as SAM does.
_SETTINGS = (
    "Architectures Environment Handler LoggingConfig MemorySize Role Runtime Timeout"
)
# Lambda's own level; a higher one would drop the lines of requests, and with them the metrics.
_LOGGING = {"ApplicationLogLevel": "INFO"}


def check(stage: Stage, artifact: Artifact) -> None:
    """Refuse a stage whose parameters or functions are not those of an artifact."""
    if wrong := [*differences(stage, artifact)]:
        message = f"{stage.name} does not run what was asked for:"
        raise DeploymentError("\n".join([message, *wrong]))


def differences(stage: Stage, artifact: Artifact) -> Iterator[str]:
    """Say where a stage's parameters and functions are not those of an artifact."""
    parameters, resources = stage.parameters(artifact), stage.resources()
    names = resources | parameters | {"Deployed": stage.outputs().get("Deployed")}
    del parameters["Canary"]  # --no-canary
    yield from _compare("parameters", stage.used_parameters(), parameters)
    for function, settings in expected(artifact, names).items():
        found = _found(stage.client("lambda"), resources[function])
        yield from _compare(function, found, settings)


def _compare(what: str, found: Any, asked: dict[str, Any]) -> Iterator[str]:
    for name, value in asked.items():
        if found.get(name) != value:
            yield f"{what}: {name} is {found.get(name)}, not {value}"


def expected(artifact: Artifact, names: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what each function should be, by logical id.

    The template, its parameters and the names that CloudFormation gave say it: unlike Lambda's
    $LATEST, a manual change in the console changes none of them.

    Args:
        artifact: The artifact.
        names: What the template may refer to: parameters and resources, and `Deployed`.
    """
    template, functions = artifact.template, {}
    # A role, for instance: its ARN ends with its name.
    arns = {f"{name}.Arn": names.get(name) for name in template["Resources"]}
    names = names | arns
    shared = template["Globals"]["Function"]
    shared["Environment"]["Variables"]["DEPLOYMENT"] = names["Deployed"]
    for name, resource in template["Resources"].items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        asked = shared | resource["Properties"]
        logging = _LOGGING | shared["LoggingConfig"] | asked["LoggingConfig"]
        asked["LoggingConfig"] = logging
        settings = {each: resolve(asked[each], names) for each in _SETTINGS.split()}
        functions[name] = settings | {
            "MemorySize": int(settings["MemorySize"]),
            "code": artifact.code[name],
            "layers": [artifact.code["CommonLayer"]],
            # None where nothing is reserved, and 0 if somebody has stopped the function by hand.
            "reserved concurrency": int(names["ReservedConcurrency"]) or None,
            "shares of other versions": {},
        }
    return functions


def _found(aws: Any, function: str) -> dict[str, Any]:
    """Return what the version behind `live` is."""
    live = aws.get_function(FunctionName=function, Qualifier="live")["Configuration"]
    concurrency = aws.get_function(FunctionName=function).get("Concurrency", {})
    alias = aws.get_alias(FunctionName=function, Name="live")
    routing = alias.get("RoutingConfig", {})
    layers = [aws.get_layer_version_by_arn(Arn=each["Arn"]) for each in live["Layers"]]
    found: dict[str, Any] = live | {
        "LoggingConfig": _LOGGING | live["LoggingConfig"],
        "Role": live["Role"].rpartition("/")[2],
        "code": _hexadecimal(live),
        "layers": [_hexadecimal(each["Content"]) for each in layers],
        "reserved concurrency": concurrency.get("ReservedConcurrentExecutions"),
        "shares of other versions": routing.get("AdditionalVersionWeights", {}),
    }
    return found


def _hexadecimal(code: dict[str, str]) -> str:
    return b64decode(code["CodeSha256"]).hex()


def lapses(stage: Stage) -> Iterator[str]:
    """Say what protects a stage no longer, or will soon stop a client."""
    outputs, dynamodb = stage.outputs(), stage.client("dynamodb")
    protection = {"EnableTerminationProtection": True}
    yield from _compare(stage.stack, stage.describe(), protection)
    for table in TABLES:
        name = outputs[f"{table}Name"]
        answer = dynamodb.describe_table(TableName=name)
        yield from _compare(name, answer["Table"], {"DeletionProtectionEnabled": True})
        answer = dynamodb.describe_continuous_backups(TableName=name)
        backups = answer["ContinuousBackupsDescription"]
        recovery = backups["PointInTimeRecoveryDescription"]
        yield from _compare(name, recovery, {"PointInTimeRecoveryStatus": "ENABLED"})
    animals = outputs["AnimalsTableName"]
    answer = dynamodb.describe_time_to_live(TableName=animals)
    expiry = {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}
    yield from _compare(animals, answer["TimeToLiveDescription"], expiry)
    # In this order: a creation takes its id from the counter first.
    highest = _last(dynamodb, animals, "pet", "id")
    last = _last(dynamodb, animals, "counter", "value")
    if last < highest:
        yield f"{animals} would give ids again: its counter is at {last}, below {highest}"
    if stage.used_parameters()["AlarmEmail"] and not _is_heard(stage):
        yield "alarms reach nobody: no subscription to their topic is confirmed"
    for key in ending(KeyTable(dynamodb, outputs["ApiKeysTableName"]).all()):
        day = time.strftime("%d %B %Y", time.gmtime(key.expires))
        yield f"the key {key.id} ({key.label}) expires on {day}, and its holder has no other"


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
    numbers = [int(item[attribute].get("N", 0)) for item in answer["Items"] if item]
    return max(numbers, default=0)


def ending(keys: list[KeyRecord]) -> list[KeyRecord]:
    """Return the valid keys that expire within 30 days without a successor.

    A holder's keys are labelled like `bob` or `bob-2027`. A key that was issued for 30 days or
    less was meant to end, as those of a check are.
    """
    limit = time.time() + _NOTICE_S
    valid = [key for key in keys if key.state == "active"]
    soon = [key for key in valid if key.expires and key.expires <= limit]
    lasting = {_holder(key) for key in valid if key not in soon}
    return [
        key
        for key in soon
        if (key.expires or 0) - key.created > _NOTICE_S and _holder(key) not in lasting
    ]


def _holder(key: KeyRecord) -> str:
    return key.label.rstrip("0123456789").removesuffix("-")
