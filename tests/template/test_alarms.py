"""Alarms and dashboard: what they watch, and when the alarms go off."""

import json
import re
from typing import Any

import pytest

from tests.support import openapi
from tests.support.stack import Template, properties_by_name, properties_of, references
from tools.packaging.sdk_data import OPERATIONS

ALARM = "AWS::CloudWatch::Alarm"
# Dimensions that AWS publishes: an alarm on others never sees a value. (Ours: unit/test_roles.py.)
DIMENSIONS = {
    "AWS/ApiGateway": [{"ApiName", "Stage"}],
    "AWS/Lambda": [
        {"FunctionName", "Resource"},
        {"FunctionName", "Resource", "ExecutedVersion"},
    ],
    "AWS/WAFV2": [{"WebACL", "Region", "Rule"}],
    "SystemErrors": [{"TableName", "Operation"}],
    "ReadThrottleEvents": [{"TableName"}, {"TableName", "GlobalSecondaryIndexName"}],
    "WriteThrottleEvents": [{"TableName"}, {"TableName", "GlobalSecondaryIndexName"}],
}


def math(alarm: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the metrics of an alarm by id, and its one expression."""
    metrics = {
        entry["Id"]: entry["MetricStat"]
        for entry in alarm["Metrics"]
        if "MetricStat" in entry
    }
    (expression,) = (
        entry["Expression"] for entry in alarm["Metrics"] if "Expression" in entry
    )
    return metrics, expression


def test_every_alarm_watches_metrics_that_exist_and_uses_each(stack: Template) -> None:
    for name, alarm in properties_by_name(stack, ALARM).items():
        metrics, expression = math(alarm)
        for stat in metrics.values():
            dimensions = {
                dimension["Name"] for dimension in stat["Metric"]["Dimensions"]
            }
            known = DIMENSIONS.get(stat["Metric"]["MetricName"]) or DIMENSIONS.get(
                stat["Metric"]["Namespace"]
            )
            assert dimensions in (known or [dimensions]), name
        assert set(re.findall(r"\b[a-z]\w*", expression)) == metrics.keys(), name
        assert alarm["TreatMissingData"] == "notBreaching"
        # FILL makes the newest period, without data yet, 0: an alarm of it alone never goes off.
        assert (
            "FILL(" not in expression
            or alarm["DatapointsToAlarm"] < alarm["EvaluationPeriods"]
        )


def test_one_alarm_is_for_codedeploy_alone_and_all_others_page(stack: Template) -> None:
    groups = properties_by_name(stack, "AWS::CodeDeploy::DeploymentGroup").values()
    of_codedeploy = set().union(
        *(references(group["AlarmConfiguration"]) for group in groups)
    )
    silent = {
        name
        for name, alarm in properties_by_name(stack, ALARM).items()
        if references(alarm.get("AlarmActions")) != {"AlarmTopic"}
    }
    assert silent == of_codedeploy == {"DeploymentAlarm"}
    assert properties_by_name(stack, ALARM)["DeploymentAlarm"]["Threshold"] == 0
    assert all(
        "Canary10Percent5Minutes" in json.dumps(group["DeploymentConfigName"])
        for group in groups
    )
    assert stack["Resources"]["AlarmSubscription"]["Condition"] == "HasAlarmEmail"


def values_of(alarm: dict[str, Any], dimension: str) -> list[Any]:
    """Return the values that a dimension has in an alarm's metrics."""
    dimensions = [
        each
        for stat in math(alarm)[0].values()
        for each in stat["Metric"]["Dimensions"]
    ]
    return [each["Value"] for each in dimensions if each["Name"] == dimension]


def test_alarms_watch_every_function_and_every_call_of_dynamodb(
    stack: Template,
) -> None:
    alarms = properties_by_name(stack, ALARM)
    functions = properties_by_name(stack, "AWS::Lambda::Function")
    live = [{"Fn::Sub": f"${{{function}}}:live"} for function in functions]
    for name in ("DeploymentAlarm", "FunctionThrottlesAlarm"):
        watched = values_of(alarms[name], "Resource")
        assert watched == live, f"template.yaml: let {name} watch every function."
    operations = {operation.id for operation in openapi.operations()}
    assert set(values_of(alarms["DeploymentAlarm"], "Operation")) == operations, (
        "template.yaml: let DeploymentAlarm watch every operation."
    )
    assert set(values_of(alarms["TableErrorsAlarm"], "Operation")) == set(OPERATIONS), (
        "template.yaml: let TableErrorsAlarm watch every call of DynamoDB."
    )
    groups = references(stack["Outputs"]["LogGroups"]["Value"])
    assert groups == properties_by_name(stack, "AWS::Logs::LogGroup").keys(), (
        "template.yaml: name every log group in the output LogGroups."
    )


@pytest.mark.parametrize(
    ("pages", "alarms", "per_minute"),
    [
        pytest.param(
            True,
            "Errors",
            {"errors": 2, "requests": 2},
            id="outage of two requests a minute",
        ),
        pytest.param(
            True,
            "Errors",
            {"errors": 0.3, "requests": 0.3},
            id="outage of a request in three minutes",
        ),
        pytest.param(
            True,
            "Errors",
            {"errors": 300, "requests": 6000},
            id="one failure in twenty of many",
        ),
        pytest.param(
            False,
            "Errors",
            {"errors": 20, "requests": 6000},
            id="a few failures of many",
        ),
        pytest.param(
            False,
            "Errors",
            {"errors": 0.1, "requests": 0.1},
            id="one failure in ten minutes",
        ),
        pytest.param(
            False, "Errors", {"errors": 0.2, "requests": 20}, id="a few failures of few"
        ),
        pytest.param(
            True,
            "Latency",
            {"latency": 4000, "requests": 2},
            id="slow, two requests a minute",
        ),
        pytest.param(
            False,
            "Latency",
            {"latency": 4000, "requests": 1},
            id="slow, one request a minute",
        ),
        pytest.param(
            True,
            "Flood",
            {"refused": 1200, "blocked": 0},
            id="flood that the gateway or a function refuses",
        ),
        pytest.param(
            True,
            "Flood",
            {"refused": 0, "blocked": 1200},
            id="flood that the firewall refuses",
        ),
        pytest.param(
            False,
            "Flood",
            {"refused": 60, "blocked": 60},
            id="a request a second refused",
        ),
    ],
)
def test_somebody_is_paged(
    stack: Template, pages: bool, alarms: str, per_minute: dict[str, float]
) -> None:
    functions = {
        "IF": lambda condition, yes, no: yes if condition else no,
        "FILL": lambda value, _: value,
    }
    off = set()
    for name in (
        ("ServerErrorsAlarm", "QuietErrorsAlarm")
        if alarms == "Errors"
        else (f"{alarms}Alarm",)
    ):
        alarm = properties_by_name(stack, ALARM)[name]
        metrics, expression = math(alarm)
        # Every period is like this; a rate a minute becomes the sum of a period.
        factors = {
            metric: stat["Period"] / 60 if stat["Stat"] == "Sum" else 1
            for metric, stat in metrics.items()
        }
        values = {
            metric: per_minute[metric] * factor for metric, factor in factors.items()
        }
        value = eval(expression, functions, values)  # noqa: S307 - the template's own
        off.add(value > alarm["Threshold"])
    assert any(off) is pages


def test_the_flood_alarm_counts_what_the_access_log_has(stack: Template) -> None:
    log_filter = properties_of(stack, "AWS::Logs::MetricFilter")
    (counted,) = log_filter["MetricTransformations"]
    watched = math(properties_by_name(stack, ALARM)["FloodAlarm"])[0]["refused"][
        "Metric"
    ]
    assert (watched["Namespace"], watched["MetricName"]) == (
        counted["MetricNamespace"],
        counted["MetricName"],
    )
    assert [dimension["Name"] for dimension in watched["Dimensions"]] == [
        each["Key"] for each in counted["Dimensions"]
    ]
    fields = json.loads(
        properties_of(stack, "AWS::ApiGateway::Stage")["AccessLogSetting"]["Format"]
    )
    assert set(re.findall(r"\$\.(\w+)", json.dumps(log_filter))) <= fields.keys()


def test_the_dashboard_can_be_drawn_and_shows_every_alarm(stack: Template) -> None:
    body = properties_of(stack, "AWS::CloudWatch::Dashboard")["DashboardBody"][
        "Fn::Sub"
    ]
    widgets = json.loads(re.sub(r"\$\{([^}]+)\}", r"<\1>", body))["widgets"]
    assert all(widget["x"] + widget["width"] <= 24 for widget in widgets)
    assert sorted(widgets[0]["properties"]["alarms"]) == sorted(
        f"<{name}.Arn>" for name in properties_by_name(stack, ALARM)
    )
