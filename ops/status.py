"""Report which commit a stage runs, whether the stage is healthy, and what has drifted.

A resource has drifted if someone has changed it without deploying a template.
"""

import time
from collections.abc import Callable, Iterator

from ops import artifacts
from ops.deploy import check_contract
from ops.stage import Stage, StageError, StageName
from tools.key_table import CHECK_HASH

_MONTH_S = 30 * 86_400
_OBJECTIVE = 0.001  # at most this share of an operation's requests may fail in a month


def status(stage: StageName) -> int:
    """Print a stage's state and commit, then each problem on a line that begins with `!`.

    Return the number of problems.
    """
    outputs = stage.outputs()
    print(stage.state())
    commit = outputs.get("Commit", "no artifact")
    print("runs", commit, "since", outputs.get("Deployed"))
    checks = (_last_good, Stage.misrouted_aliases, _topic, _keys, _failures)
    return sum(_report(stage, check) for check in checks)


def check_stage(stage: StageName) -> None:
    """Print the status, look for drift, and run the contract suite; fail if there is a problem."""
    problems = status(stage) + _report(stage, _drift)
    with artifacts.unpack(stage, stage.commit()) as folder:
        check_contract(stage, folder)
    if problems:
        raise StageError(f"{problems} problems were found: see above")


def _report(stage: Stage, check: Callable[[Stage], Iterator[str]]) -> int:
    """Print the problems that a check yields; return their number."""
    problems = 0
    try:
        for line in check(stage):
            problems += 1
            print("!", line)
    except Exception as error:
        problems += 1
        print("!", check.__name__.strip("_"), "cannot be checked:", error)
    return problems


def _last_good(stage: Stage) -> Iterator[str]:
    last_good = artifacts.last_good(stage) or "none"
    if stage.commit() != last_good:
        yield f"it has not passed its check; the last commit that did: {last_good}"


def _topic(stage: Stage) -> Iterator[str]:
    topic = stage.client("sns").get_topic_attributes(
        TopicArn=stage.outputs()["AlarmTopicArn"]
    )
    if topic["Attributes"]["SubscriptionsConfirmed"] == "0":
        yield "no subscription to the alarms' mail is confirmed"


def _keys(stage: Stage) -> Iterator[str]:
    """Yield each key that expires within 30 days, except the contract suite's one-hour keys."""
    for key in stage.keys().all():
        is_check = key.hash.startswith(CHECK_HASH)
        expires_soon = key.expires and key.expires < time.time() + _MONTH_S
        if expires_soon and key.state == "active" and not is_check:
            yield f"key {key.id} ({key.label}) expires on {time.ctime(key.expires)}"


def _failures(stage: Stage) -> Iterator[str]:
    """Yield the shares of failed requests that exceed the objective; print the other shares.

    This check finds failures that no alarm reports, because alarms fire only above 0.6 %.
    """
    cloudwatch = stage.client("cloudwatch")
    # CloudWatch rounds an old start time down to five minutes. The range would then be longer than
    # one period, and the response would have two data points. So round both times here.
    end = time.time() // 300 * 300
    metrics = cloudwatch.list_metrics(Namespace="AnimalStore", MetricName="Failed")
    for metric in metrics["Metrics"]:
        statistics = cloudwatch.get_metric_statistics(
            **metric,
            StartTime=end - _MONTH_S,
            EndTime=end,
            Period=_MONTH_S,
            Statistics=["Average"],
        )
        operation = " ".join(dimension["Value"] for dimension in metric["Dimensions"])
        for point in statistics["Datapoints"]:
            share = point["Average"]
            line = f"{operation}: {share:.3%} of its requests failed in 30 days"
            if share > _OBJECTIVE:
                yield line
            else:
                print(line)


def _drift(stage: Stage) -> Iterator[str]:
    """Yield each resource that differs from the template, as far as CloudFormation detects it."""
    client = stage.client("cloudformation")
    detection_id = client.detect_stack_drift(StackName=stage.stack)[
        "StackDriftDetectionId"
    ]
    print("waiting for drift detection, which takes minutes")
    while True:
        detection = client.describe_stack_drift_detection_status(
            StackDriftDetectionId=detection_id
        )
        if detection["DetectionStatus"] != "DETECTION_IN_PROGRESS":
            break
        time.sleep(5)
    if detection["DetectionStatus"] != "DETECTION_COMPLETE":
        yield f"drift detection failed: {detection.get('DetectionStatusReason')}"
    drifts = client.describe_stack_resource_drifts(
        StackName=stage.stack,
        StackResourceDriftStatusFilters=["MODIFIED", "DELETED"],
        MaxResults=100,  # the stack has fewer resources
    )
    for drift in drifts["StackResourceDrifts"]:
        yield f"{drift['LogicalResourceId']} is {drift['StackResourceDriftStatus']}"
        for difference in drift.get("PropertyDifferences", []):
            print(
                f"  {difference['PropertyPath']} is {difference['ActualValue']}, "
                f"not {difference['ExpectedValue']}"
            )
