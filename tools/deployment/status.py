"""Say what a stage runs and how it is, and what changed although nobody deployed."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import jmespath  # type: ignore[import-untyped]
from botocore.exceptions import ClientError

from tools.deployment.contract import check_contract
from tools.deployment.deploy import last_good
from tools.deployment.stage import DeploymentError, Stage, StageName
from tools.key_table import CHECK_HASH

_MONTH_S = 30 * 86_400
_OBJECTIVE = 0.001  # the share of an operation's requests that may fail in a month


def status(stage: StageName) -> int:
    """Say what a stage runs, and what is not as it should be; return how much that is."""
    stage.announce()
    found = 0
    for part in (_version, _settings, _keys, _failures, _drift):
        try:
            for line in part(stage):
                found += 1
                print("!", line)
        except (ClientError, DeploymentError, KeyError) as error:
            found += 1
            print("!", part.__name__, error)
    return found


def check_stage(stage: StageName) -> None:
    """Do as `status`, then test the stage (production: reads only); fail if anything is wrong."""
    found = status(stage)
    check_contract(stage)
    if found:
        raise DeploymentError(f"{found} things are not as they should be: see above")


def _version(stage: Stage) -> Iterator[str]:
    print(stage.state())
    runs, good = stage.deployed(), last_good(stage)
    print(runs["Commit"], "runs since", runs["Deployed"])
    if runs["Commit"] != good:
        yield f"it has not passed its check; the last that did: {good}"


def _settings(stage: Stage) -> Iterator[str]:
    """Compare what AWS answers, and go on where it does not."""
    for service, operation, asked, path, expected in _questions(stage):
        try:
            answer = getattr(stage.client(service), operation)(**asked)
            found = jmespath.search(path, answer)
        except ClientError as error:
            found = error
        if found != expected:
            yield f"{operation} {asked}: {path} is {found}, not {expected}"


def _questions(stage: Stage) -> Iterator[tuple[str, str, dict[str, Any], str, object]]:
    """Yield what to ask whom, what of the answer counts, and what it should be."""
    outputs = stage.deployed()
    kinds = ["MetricAlarm", "CompositeAlarm"]
    alarms = {
        "AlarmNamePrefix": stage.stack,
        "AlarmTypes": kinds,
        "StateValue": "ALARM",
    }
    ringing = "[MetricAlarms, CompositeAlarms][].AlarmName"
    yield "cloudwatch", "describe_alarms", alarms, ringing, []
    topic = {"TopicArn": outputs["AlarmTopicArn"]}
    confirmed = "length(Subscriptions[?starts_with(SubscriptionArn, 'arn:')]) > `0`"
    yield "sns", "list_subscriptions_by_topic", topic, confirmed, True
    for name, life in (("AnimalsTable", "ENABLED"), ("ApiKeysTable", "DISABLED")):
        table = {"TableName": outputs[f"{name}Name"]}
        recovery = (
            "ContinuousBackupsDescription.PointInTimeRecoveryDescription."
            "PointInTimeRecoveryStatus"
        )
        yield "dynamodb", "describe_continuous_backups", table, recovery, "ENABLED"
        expiry = "TimeToLiveDescription.TimeToLiveStatus"
        yield "dynamodb", "describe_time_to_live", table, expiry, life
    for each in resources(stage):
        function, _, version = each["PhysicalResourceId"].rpartition(":")
        if each["ResourceType"] == "AWS::Lambda::Version":
            alias = {"FunctionName": function, "Name": "live"}
            shares = "[FunctionVersion, RoutingConfig.AdditionalVersionWeights || `{}`]"
            yield "lambda", "get_alias", alias, shares, [version, {}]
    # The highest id first: a creation takes its id from the counter.
    query = {
        "TableName": outputs["AnimalsTableName"],
        "KeyConditionExpression": "pk = :pk",
        "ProjectionExpression": "id, #value",
        "ExpressionAttributeNames": {"#value": "value"},
        "Select": "SPECIFIC_ATTRIBUTES",
        "ScanIndexForward": False,
        "Limit": 1,
        "ConsistentRead": True,
    }
    values = {"ExpressionAttributeValues": {":pk": {"S": "pet"}}}
    answer = stage.client("dynamodb").query(**query, **values)
    highest = jmespath.search("Items[0].id.N || '0'", answer)
    values = {"ExpressionAttributeValues": {":pk": {"S": "counter"}}}
    counter = f"to_number(Items[0].value.N || '0') >= `{highest}`"
    yield "dynamodb", "query", query | values, counter, True


def resources(stage: Stage) -> list[dict[str, Any]]:
    """Return CloudFormation's summary of each resource of a stage's stack."""
    paginator = stage.client("cloudformation").get_paginator("list_stack_resources")
    return [
        *paginator.paginate(StackName=stage.stack).search("StackResourceSummaries[]")
    ]


def _keys(stage: Stage) -> Iterator[str]:
    """Name the keys of clients that end within 30 days."""
    for key in stage.keys().all():
        day = time.strftime("%d %B", time.gmtime(key.expires))
        is_near = key.expires and key.expires < time.time() + _MONTH_S
        if is_near and key.state == "active" and not key.hash.startswith(CHECK_HASH):
            yield f"key {key.id} ({key.label}) ends on {day}"


def _failures(stage: Stage) -> Iterator[str]:
    """Print each operation's share of failures in 30 days: no alarm rings at 0.5 %."""
    cloudwatch, now = stage.client("cloudwatch"), datetime.now(UTC)
    of_stage = [{"Name": "Stage", "Value": stage.name}]
    month = {"StartTime": now - timedelta(30), "EndTime": now, "Period": _MONTH_S}
    answer = cloudwatch.list_metrics(MetricName="Failed", Dimensions=of_stage)
    for each in answer["Metrics"]:
        operation = [name["Value"] for name in each["Dimensions"]]
        answer = cloudwatch.get_metric_statistics(
            **each, **month, Statistics=["Average"]
        )
        for share in answer["Datapoints"]:
            print(*operation, f"{share['Average']:.3%} failed in 30 days")
            if share["Average"] > _OBJECTIVE:
                yield "that is more than the objective allows"


def _drift(stage: Stage) -> Iterator[str]:
    """Let CloudFormation compare the stack with its template, as far as it can."""
    client, key = stage.client("cloudformation"), "StackDriftDetectionId"
    detection = {key: client.detect_stack_drift(StackName=stage.stack)[key]}
    for _ in range(60):
        answer = client.describe_stack_drift_detection_status(**detection)
        if answer["DetectionStatus"] != "DETECTION_IN_PROGRESS":
            break
        print("waiting up to ten minutes for CloudFormation to look for drift")
        stage.sleep(10)
    for each in resources(stage):
        found = each["DriftInformation"]["StackResourceDriftStatus"]
        if found in {"MODIFIED", "DELETED"}:
            yield f"{each['LogicalResourceId']} is {found}"
        elif found != "IN_SYNC":
            print(each["LogicalResourceId"], "is", found)
