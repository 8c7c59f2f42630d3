"""Report what a stage runs, whether it is healthy, and what has drifted."""

import time
from collections.abc import Callable, Iterator

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
    parts = (_version, Stage.misdirected, _topic, _keys, _failures)
    return sum(_report(stage, part) for part in parts)


def check_stage(stage: StageName) -> None:
    """Do as `status`, look for drift, and run the contract suite; fail if anything is wrong."""
    wrong = status(stage) + _report(stage, _drift)
    artifact = artifacts.load(stage, stage.commit())
    with artifacts.unpacked(artifact) as (folder, _):
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
    good = artifacts.last_good(stage)
    commit = stage.commit() or "no artifact"
    print("runs", commit, "since", stage.outputs().get("Deployed"))
    if commit != good:
        yield f"it has not passed its check; the last that did: {good or 'none'}"


def _topic(stage: Stage) -> Iterator[str]:
    topic = stage.client("sns").get_topic_attributes(
        TopicArn=stage.outputs()["AlarmTopicArn"]
    )
    if topic["Attributes"]["SubscriptionsConfirmed"] == "0":
        yield "nobody has confirmed the address of the alarms"


def _keys(stage: Stage) -> Iterator[str]:
    """Name the keys of clients that end within 30 days; a check's key lasts an hour."""
    for key in stage.keys().all():
        ends = key.expires and key.expires < time.time() + _MONTH_S
        if ends and key.state == "active" and not key.hash.startswith(CHECK_HASH):
            yield f"key {key.id} ({key.label}) ends on {time.ctime(key.expires)}"


def _failures(stage: Stage) -> Iterator[str]:
    """Print each operation's share of failures in 30 days: no alarm fires at 0.5 %."""
    cloudwatch = stage.client("cloudwatch")
    # CloudWatch rounds a start so long ago to five minutes: a second point would follow.
    end = time.time() // 300 * 300
    listed = cloudwatch.list_metrics(Namespace="AnimalStore", MetricName="Failed")
    for metric in listed["Metrics"]:
        answer = cloudwatch.get_metric_statistics(
            **metric,
            StartTime=end - _MONTH_S,
            EndTime=end,
            Period=_MONTH_S,
            Statistics=["Average"],
        )
        operation = " ".join(each["Value"] for each in metric["Dimensions"])
        for point in answer["Datapoints"]:
            share = point["Average"]
            line = f"{operation}: {share:.3%} of its requests failed in 30 days"
            if share > _OBJECTIVE:
                yield line
            else:
                print(line)


def _drift(stage: Stage) -> Iterator[str]:
    """Let CloudFormation compare the stack's resources with its template, as far as it can."""
    client = stage.client("cloudformation")
    started = client.detect_stack_drift(StackName=stage.stack)["StackDriftDetectionId"]
    print("waiting for drift detection, which takes minutes")
    while True:
        detection = client.describe_stack_drift_detection_status(
            StackDriftDetectionId=started
        )
        if detection["DetectionStatus"] != "DETECTION_IN_PROGRESS":
            break
        time.sleep(5)
    if detection["DetectionStatus"] != "DETECTION_COMPLETE":
        yield f"drift detection failed: {detection.get('DetectionStatusReason')}"
    drifts = client.describe_stack_resource_drifts(
        StackName=stage.stack,
        StackResourceDriftStatusFilters=["MODIFIED", "DELETED"],
        MaxResults=100,  # the stack has fewer
    )
    for drift in drifts["StackResourceDrifts"]:
        yield f"{drift['LogicalResourceId']} is {drift['StackResourceDriftStatus']}"
        for difference in drift.get("PropertyDifferences", []):
            print(
                f"  {difference['PropertyPath']} is {difference['ActualValue']}, "
                f"not {difference['ExpectedValue']}"
            )
