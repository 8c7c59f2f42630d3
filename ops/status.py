"""Report which commit a stage runs, whether the stage is healthy, and what has drifted.

A resource has drifted if someone has changed it without deploying a template.
"""

import time
from collections.abc import Iterator
from typing import Any

from animal_store import api_key

from ops import artifacts
from ops.deploy import check_contract, report, what_runs
from ops.stage import Stage, StageArgument, StageError

_MONTH_S = 30 * 86_400
_OBJECTIVE = 0.001  # at most this share of an operation's requests may fail in a month


def status(stage: StageArgument) -> int:
    """Print a stage's state and commit, then each problem on a line that begins with `!`."""
    print("deployed on", stage.outputs().get("Deployed", "an unknown day"))
    checks = (
        what_runs,
        Stage.misrouted_aliases,
        _missing_tables,
        _alarm_mail,
        _keys,
        _access_log,
        _failures,
    )
    return sum(report(stage, check) for check in checks)


def check_stage(stage: StageArgument) -> None:
    """Print the status, look for drift, and run the contract suite; fail if there is a problem."""
    problems = status(stage) + report(stage, _drift)
    with artifacts.unpack(stage, stage.commit()) as folder:
        check_contract(stage, folder)
    if problems:
        raise StageError(f"{problems} problems were found: see above")


def _alarm_mail(stage: Stage) -> Iterator[str]:
    topic = stage.client("sns").get_topic_attributes(
        TopicArn=stage.outputs()["AlarmTopicArn"]
    )
    if topic["Attributes"]["SubscriptionsConfirmed"] == "0":
        yield "no subscription to the alarms' mail is confirmed"


def _missing_tables(stage: Stage) -> Iterator[str]:
    dynamodb, outputs = stage.client("dynamodb"), stage.outputs()
    for table in (outputs["AnimalsTableName"], outputs["ApiKeysTableName"]):
        try:
            dynamodb.describe_table(TableName=table)
        except dynamodb.exceptions.ResourceNotFoundException:
            yield f"{table} is missing: see docs/runbook.md, A table is gone"


def _keys(stage: Stage) -> Iterator[str]:
    """Yield each active key that is valid for too long, or that a client must soon replace."""
    now = time.time()
    for key in stage.keys().all():
        if key.state != "active":
            continue
        is_check = key.hash.startswith(api_key.CHECK_HASH_PREFIX)
        # A record's label may have control characters for a terminal: `!a` escapes them.
        name = f"key {key.id} ({key.label!a})"
        if key.expires is None:
            yield f"{name} never expires"
        elif is_check and key.expires > now + api_key.CHECK_KEY_SECONDS:
            yield f"{name} of the contract suite expires on {time.ctime(key.expires)}"
        elif not is_check and key.expires < now + _MONTH_S:
            yield f"{name} expires on {time.ctime(key.expires)}"


def _access_log(stage: Stage) -> Iterator[str]:
    """Yield a problem if the access log got no line for the last hour's requests.

    It compares CloudWatch's counts of lines and requests, which needs no permission to read logs.
    """
    log_group = stage.outputs()["LogGroups"].split()[0]
    requests = {
        "Namespace": "AWS/ApiGateway",
        "MetricName": "Count",
        "Dimensions": [{"Name": "ApiName", "Value": stage.stack}],
    }
    lines = {
        "Namespace": "AWS/Logs",
        "MetricName": "IncomingLogEvents",
        "Dimensions": [{"Name": "LogGroupName", "Value": log_group}],
    }
    # A line may come some minutes late, so leave out the requests of the last ten minutes.
    count = sum(_values(stage, requests, "Sum", 3600, until=600))
    if count and not sum(_values(stage, lines, "Sum", 3600)):
        yield "the access log has stopped: see its log group, and API Gateway's role"


def _failures(stage: Stage) -> Iterator[str]:
    """Yield each operation that misses the objective for failed requests; print the others.

    docs/reliability.md says which requests count as failed. This check finds what ObjectiveAlarm
    does not: for the alarm, over 0.6 % of an operation's requests must fail. CloudWatch does not
    list an operation that nobody has called for two weeks.
    """
    cloudwatch = stage.client("cloudwatch")
    metrics = cloudwatch.list_metrics(Namespace="AnimalStore", MetricName="Failed")
    for metric in metrics["Metrics"]:
        operation = " ".join(dimension["Value"] for dimension in metric["Dimensions"])
        for share in _values(stage, metric, "Average", _MONTH_S):
            line = f"{operation}: {share:.3%} of its requests failed in 30 days"
            if share > _OBJECTIVE:
                yield line
            else:
                print(line)


def _values(
    stage: Stage, metric: Any, statistic: str, seconds: int, *, until: int = 0
) -> list[float]:
    """Return a metric's statistic as a list of one value; empty if the metric has no data.

    It covers the time from `seconds` ago until `until` seconds ago.
    """
    # CloudWatch rounds an old start time down to five minutes. The range would then be longer than
    # one period, and the response would have two data points. So round the times here.
    now = time.time() // 300 * 300
    response = stage.client("cloudwatch").get_metric_statistics(
        **metric,
        StartTime=now - seconds,
        EndTime=now - until,
        Period=seconds,
        Statistics=[statistic],
    )
    return [point[statistic] for point in response["Datapoints"]]


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
        MaxResults=100,  # the maximum; a stage's stack has fewer resources
    )
    for drift in drifts["StackResourceDrifts"]:
        yield f"{drift['LogicalResourceId']} is {drift['StackResourceDriftStatus']}"
        for difference in drift.get("PropertyDifferences", []):
            print(" ", difference)
