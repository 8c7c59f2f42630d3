"""Report what a stage runs, whether it is healthy, and what has drifted."""

import time
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from ops import artifacts
from ops.deploy import check_contract
from ops.stage import DeploymentError, Stage, StageName
from tools.key_table import CHECK_HASH

_MONTH_S = 30 * 86_400
_OBJECTIVE = 0.001  # the share of an operation's requests that may fail in a month

Part = Callable[[Stage], Iterator[str]]
"""Prints what it looks at, and yields what is not as it should be."""


def status(stage: StageName) -> int:
    """Print what a stage runs and, after `!`, what is wrong; return how many things are wrong."""
    print(stage.state())
    if not stage.outputs():
        return 1
    parts = (_version, Stage.misdirected, _topic, _tables, _counter, _keys, _failures)
    return sum(_report(stage, part) for part in parts)


def check_stage(stage: StageName) -> None:
    """Do as `status`, look for drift, and run the contract suite; fail if anything is wrong."""
    wrong = status(stage) + _report(stage, _drift)
    if not (commit := stage.commit()):
        raise DeploymentError(
            f"{stage.name} runs no artifact, which would have a contract suite"
        )
    with artifacts.unpacked(artifacts.load(stage, commit)) as (folder, _):
        check_contract(stage, folder)
    if wrong:
        raise DeploymentError(f"{wrong} things are not as they should be: see above")


def _report(stage: Stage, part: Part) -> int:
    wrong = 0
    try:
        for line in part(stage):
            wrong += 1
            print("!", line)
    except Exception as error:
        wrong += 1
        print("!", part.__name__.strip("_"), "cannot be checked:", error)
    return wrong


def _version(stage: Stage) -> Iterator[str]:
    runs, good = stage.outputs(), artifacts.last_good(stage)
    commit = runs.get("Commit", "what a plain `sam deploy` has deployed")
    print("runs", commit, "since", runs.get("Deployed", "an unknown time"))
    if commit != good:
        yield f"it has not passed its check; the last that did: {good or 'none'}"


def _topic(stage: Stage) -> Iterator[str]:
    topic = stage.client("sns").get_topic_attributes(
        TopicArn=stage.outputs()["AlarmTopicArn"]
    )
    if topic["Attributes"]["SubscriptionsConfirmed"] == "0":
        yield "nobody has confirmed the address of the alarms"


def _tables(stage: Stage) -> Iterator[str]:
    """Look at the recovery and the expiry of both tables, also if one of them is gone."""
    outputs, dynamodb = stage.outputs(), stage.client("dynamodb")
    for output, expiry in (
        ("AnimalsTableName", "ENABLED"),
        ("ApiKeysTableName", "DISABLED"),
    ):
        table = outputs[output]
        try:
            backups = dynamodb.describe_continuous_backups(TableName=table)
            backups = backups["ContinuousBackupsDescription"][
                "PointInTimeRecoveryDescription"
            ]
            if (recovery := backups["PointInTimeRecoveryStatus"]) != "ENABLED":
                yield f"{table}: point-in-time recovery is {recovery}"
            ttl = dynamodb.describe_time_to_live(TableName=table)[
                "TimeToLiveDescription"
            ]
            if (state := ttl["TimeToLiveStatus"]) != expiry:
                yield f"{table}: time to live is {state}"
        except Exception as error:
            yield f"{table} cannot be checked: {error}"


def _counter(stage: Stage) -> Iterator[str]:
    # In this order: a creation takes its id from the counter.
    highest, counter = _last(stage, "pet", "id"), _last(stage, "counter", "value")
    if counter < highest:
        yield f"the counter, {counter}, is below the highest id, {highest}"


def _last(stage: Stage, partition: str, attribute: str) -> float:
    """Return a number of a partition's last item; 0 if there is none."""
    answer = stage.client("dynamodb").query(
        TableName=stage.outputs()["AnimalsTableName"],
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": partition}},
        ProjectionExpression="#attribute",
        ExpressionAttributeNames={"#attribute": attribute},
        Select="SPECIFIC_ATTRIBUTES",
        ScanIndexForward=False,
        Limit=1,
        ConsistentRead=True,
    )
    for item in answer["Items"]:
        if "N" in item.get(attribute, {}):
            return float(item[attribute]["N"])
        raise DeploymentError(f"{partition} has no number {attribute}: {item}")
    return 0


def _keys(stage: Stage) -> Iterator[str]:
    """Name the keys of clients that end within 30 days; a check's key lasts an hour."""
    for key in stage.keys().all():
        ends = key.expires and key.expires < time.time() + _MONTH_S
        if ends and key.state == "active" and not key.hash.startswith(CHECK_HASH):
            yield f"key {key.id} ({key.label}) ends on {time.ctime(key.expires)}"


def _failures(stage: Stage) -> Iterator[str]:
    """Print each operation's share of failures in 30 days: no alarm fires at 0.5 %."""
    cloudwatch, now = stage.client("cloudwatch"), time.time()
    metrics = cloudwatch.list_metrics(Namespace="AnimalStore", MetricName="Failed")[
        "Metrics"
    ]
    for metric in metrics:
        answer = cloudwatch.get_metric_statistics(
            **metric,
            StartTime=now - _MONTH_S,
            EndTime=now,
            Period=_MONTH_S,
            Statistics=["Average"],
        )
        # The start is rounded down to five minutes, so that a second point may follow with the
        # failures of the last minutes.
        for point in sorted(answer["Datapoints"], key=itemgetter("Timestamp"))[:1]:
            operation = " ".join(each["Value"] for each in metric["Dimensions"])
            line = (
                f"{operation}: {point['Average']:.3%} of its requests failed in 30 days"
            )
            if point["Average"] > _OBJECTIVE:
                yield line
            else:
                print(line)


def _drift(stage: Stage) -> Iterator[str]:
    """Let CloudFormation compare the stack's resources with its template, as far as it can."""
    client = stage.client("cloudformation")
    started = client.detect_stack_drift(StackName=stage.stack)["StackDriftDetectionId"]
    print("waiting up to 20 minutes for drift detection")
    for _ in range(120):
        detection = client.describe_stack_drift_detection_status(
            StackDriftDetectionId=started
        )
        if detection["DetectionStatus"] != "DETECTION_IN_PROGRESS":
            break
        time.sleep(10)
    if detection["DetectionStatus"] != "DETECTION_COMPLETE":
        reason = detection.get("DetectionStatusReason", "")
        yield f"drift detection: {detection['DetectionStatus']} {reason}"
    drifts = [*_resource_drifts(client, stage.stack)]
    for drift in drifts:
        name, state = drift["LogicalResourceId"], drift["StackResourceDriftStatus"]
        if state == "DELETED":
            yield f"{name} is gone"
        for difference in drift.get("PropertyDifferences", []):
            yield (
                f"{name} is {state}: {difference['PropertyPath']} "
                f"is {difference['ActualValue']}, not {difference['ExpectedValue']}"
            )
    print("CloudFormation compared", len(drifts), "resources")


def _resource_drifts(client: Any, stack: str) -> Iterator[dict[str, Any]]:
    """Yield what the last detection says of each resource; the SDK has no paginator for it."""
    page = client.describe_stack_resource_drifts(StackName=stack)
    yield from page["StackResourceDrifts"]
    while token := page.get("NextToken"):
        page = client.describe_stack_resource_drifts(StackName=stack, NextToken=token)
        yield from page["StackResourceDrifts"]
