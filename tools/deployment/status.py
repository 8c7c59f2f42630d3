"""Say what a stage runs and how it is, and what changed although nobody deployed."""

import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import jmespath  # type: ignore[import-untyped]

from tools.deployment.deploy import check_contract, last_good
from tools.deployment.stage import DeploymentError, Stage, StageName

_MONTH_S = 30 * 86_400
_OBJECTIVE = 0.001  # the share of an operation's requests that may fail in a month

_RECOVERY = (
    "ContinuousBackupsDescription.PointInTimeRecoveryDescription."
    "PointInTimeRecoveryStatus"
)


def status(stage: StageName) -> int:
    """Say what a stage runs, and what is not as it should be; return how much that is."""
    stage.announce()
    found = 0
    parts = (_version, _alarms, _tables, _counter, _keys, _failures, _resources)
    for part in parts:
        try:
            for line in part(stage):
                found += 1
                print("!", line)
        except Exception as error:
            found += 1
            print("!", part.__name__, error)
    return found


def check_stage(stage: StageName) -> None:
    """Do as `status`, then test the stage (production: reads only); fail if anything is wrong."""
    found = status(stage)
    check_contract(stage)
    if found:
        raise DeploymentError(f"{found} things are not as they should be: see above")


def resources(stage: Stage) -> list[dict[str, Any]]:
    """Return CloudFormation's summary of each resource of a stage's stack."""
    pages = stage.client("cloudformation").get_paginator("list_stack_resources")
    return [*pages.paginate(StackName=stage.stack).search("StackResourceSummaries[]")]


def _version(stage: Stage) -> Iterator[str]:
    print(stage.state())
    runs, good = stage.deployed(), last_good(stage)
    print(runs["Commit"], "runs since", runs["Deployed"])
    if runs["Commit"] != good:
        yield f"it has not passed its check; the last that did: {good}"


def _alarms(stage: Stage) -> Iterator[str]:
    pages = stage.client("cloudwatch").get_paginator("describe_alarms")
    kinds = ["MetricAlarm", "CompositeAlarm"]
    alarms = pages.paginate(AlarmNamePrefix=stage.stack, AlarmTypes=kinds)
    for name in alarms.search(
        "[MetricAlarms, CompositeAlarms][] | [?StateValue=='ALARM'].AlarmName"
    ):
        yield f"{name} rings"
    topic = stage.deployed()["AlarmTopicArn"]
    answer = stage.client("sns").get_topic_attributes(TopicArn=topic)
    if answer["Attributes"]["SubscriptionsConfirmed"] == "0":
        yield "nobody has confirmed the address of the alarms"


def _tables(stage: Stage) -> Iterator[str]:
    """Find what drift detection leaves out of both tables."""
    outputs, client = stage.deployed(), stage.client("dynamodb")
    for output, life in (
        ("AnimalsTableName", "ENABLED"),
        ("ApiKeysTableName", "DISABLED"),
    ):
        table = {"TableName": outputs[output]}
        backups = client.describe_continuous_backups(**table)
        if jmespath.search(_RECOVERY, backups) != "ENABLED":
            yield f"point-in-time recovery is off: {table}"
        expiry = client.describe_time_to_live(**table)["TimeToLiveDescription"]
        if expiry["TimeToLiveStatus"] != life:
            yield f"time to live should be {life}: {table} has {expiry}"


def _counter(stage: Stage) -> Iterator[str]:
    last = {}
    # In this order: a creation takes its id from the counter.
    for pk, name in (("pet", "id"), ("counter", "value")):
        answer = stage.client("dynamodb").query(
            TableName=stage.deployed()["AnimalsTableName"],
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": pk}},
            ProjectionExpression="#name",
            ExpressionAttributeNames={"#name": name},
            Select="SPECIFIC_ATTRIBUTES",
            ScanIndexForward=False,
            Limit=1,
            ConsistentRead=True,
        )
        last[pk] = float(jmespath.search(f"Items[0].{name}.N", answer) or 0)
    if last["counter"] < last["pet"]:
        yield f"the counter is below the highest id: {last}"


def _keys(stage: Stage) -> Iterator[str]:
    """Name the keys of clients that end within 30 days; a check's key lasts an hour."""
    for key in stage.keys().all():
        ends = key.expires and key.expires < time.time() + _MONTH_S
        if ends and key.state == "active" and key.label != "check":
            yield f"key {key.id} ({key.label}) ends on {time.ctime(key.expires)}"


def _failures(stage: Stage) -> Iterator[str]:
    """Print each operation's share of failures in 30 days: no alarm rings at 0.5 %."""
    cloudwatch, now = stage.client("cloudwatch"), datetime.now(UTC)
    metrics = {"Namespace": "AnimalStore", "MetricName": "Failed"}
    for each in cloudwatch.list_metrics(**metrics)["Metrics"]:
        answer = cloudwatch.get_metric_statistics(
            **each,
            StartTime=now - timedelta(30),
            EndTime=now,
            Period=_MONTH_S,
            Statistics=["Average"],
        )
        for share in answer["Datapoints"]:
            print(f"{share['Average']:.3%} failed in 30 days:", each["Dimensions"])
            if share["Average"] > _OBJECTIVE:
                yield "that is more than the objective allows"


def _resources(stage: Stage) -> Iterator[str]:
    """Let CloudFormation look for drift, as far as it can, and look behind the alias `live`."""
    client, key = stage.client("cloudformation"), "StackDriftDetectionId"
    detection = {key: client.detect_stack_drift(StackName=stage.stack)[key]}
    ask = client.describe_stack_drift_detection_status
    stage.wait("drift detection", lambda: ask(**detection)["DetectionStatus"])
    drift = Counter[str]()
    for each in resources(stage):
        found = each["DriftInformation"]["StackResourceDriftStatus"]
        drift[found] += 1
        if found in {"MODIFIED", "DELETED"}:
            yield f"{each['LogicalResourceId']} is {found}"
        name, _, version = each["PhysicalResourceId"].rpartition(":")
        if each["ResourceType"] == "AWS::Lambda::Version":
            alias = stage.client("lambda").get_alias(FunctionName=name, Name="live")
            if alias["FunctionVersion"] != version:
                yield f"version {version} was deployed, and live is {alias}"
    print("what CloudFormation says of its resources' drift:", dict(drift))
