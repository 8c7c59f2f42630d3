"""Say what a stage runs and how it is, and what changed although nobody deployed."""

import time
from collections import Counter
from collections.abc import Iterator

import jmespath  # type: ignore[import-untyped]

from ops.deploy import check_contract, last_good
from ops.stage import DeploymentError, Stage, StageName
from tools.key_table import CHECK_HASH

_MONTH_S = 30 * 86_400
_OBJECTIVE = 0.001  # the share of an operation's requests that may fail in a month

# The state of point-in-time recovery and of time to live, in what AWS says of a table.
_LAPSES = (
    "[ContinuousBackupsDescription.PointInTimeRecoveryDescription"
    ".PointInTimeRecoveryStatus, TimeToLiveDescription.TimeToLiveStatus]"
)


def status(stage: StageName) -> int:
    """Say what a stage runs, and what is not as it should be; return how much that is."""
    found = 0
    for part in _version, _topic, _tables, _counter, _keys, _failures, _resources:
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


def _version(stage: Stage) -> Iterator[str]:
    print(stage.state())
    runs, good = stage.deployed(), last_good(stage)
    print(runs["Commit"], "runs since", runs["Deployed"])
    if runs["Commit"] != good:
        yield f"it has not passed its check; the last that did: {good}"


def _topic(stage: Stage) -> Iterator[str]:
    answer = stage.client("sns").get_topic_attributes(
        TopicArn=stage.deployed()["AlarmTopicArn"]
    )
    if answer["Attributes"]["SubscriptionsConfirmed"] == "0":
        yield "nobody has confirmed the address of the alarms"


def _tables(stage: Stage) -> Iterator[str]:
    """Look at the recovery and the expiry of both tables."""
    outputs, client = stage.deployed(), stage.client("dynamodb")
    lives = {"AnimalsTableName": "ENABLED", "ApiKeysTableName": "DISABLED"}
    for output, life in lives.items():
        table = {"TableName": outputs[output]}
        said = client.describe_continuous_backups(**table)
        found = jmespath.search(_LAPSES, said | client.describe_time_to_live(**table))
        if found != ["ENABLED", life]:
            yield f"point-in-time recovery and time to live: {table} has {found}"


def _counter(stage: Stage) -> Iterator[str]:
    last = {}
    # In this order: a creation takes its id from the counter.
    for pk, name in ("pet", "id"), ("counter", "value"):
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
        if ends and key.state == "active" and not key.hash.startswith(CHECK_HASH):
            yield f"key {key.id} ({key.label}) ends on {time.ctime(key.expires)}"


def _failures(stage: Stage) -> Iterator[str]:
    """Print each operation's share of failures in 30 days: no alarm rings at 0.5 %."""
    cloudwatch, now = stage.client("cloudwatch"), time.time()
    found = cloudwatch.list_metrics(Namespace="AnimalStore", MetricName="Failed")
    for each in found["Metrics"]:
        answer = cloudwatch.get_metric_statistics(
            **each,
            StartTime=now - _MONTH_S,
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
    client = stage.client("cloudformation")
    started = client.detect_stack_drift(StackName=stage.stack)
    print("waiting up to 20 minutes for drift detection")
    for _ in range(120):
        found = client.describe_stack_drift_detection_status(
            StackDriftDetectionId=started["StackDriftDetectionId"]
        )
        if found["DetectionStatus"] != "DETECTION_IN_PROGRESS":
            break
        time.sleep(10)
    if found["DetectionStatus"] != "DETECTION_COMPLETE":
        yield f"drift detection did not end: {found}"
    drift = Counter[str]()
    pages = client.get_paginator("list_stack_resources")
    for each in pages.paginate(StackName=stage.stack).search(
        "StackResourceSummaries[]"
    ):
        state = each["DriftInformation"]["StackResourceDriftStatus"]
        drift[state] += 1
        if state in {"MODIFIED", "DELETED"}:
            yield f"{each['LogicalResourceId']} is {state}"
        name, _, version = each["PhysicalResourceId"].rpartition(":")
        if each["ResourceType"] == "AWS::Lambda::Version":
            alias = stage.client("lambda").get_alias(FunctionName=name, Name="live")
            if alias["FunctionVersion"] != version:
                yield f"version {version} was deployed, and live is {alias}"
    print("what CloudFormation says of its resources' drift:", drift)
