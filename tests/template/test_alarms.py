"""Alarms and dashboard: what they watch, and when the alarms go off."""

import json
from typing import Any

import pytest

from tests.support import openapi
from tests.support.stack import Template, properties_by_name, properties_of
from tools.packaging.sdk_data import OPERATIONS

ALARM = "AWS::CloudWatch::Alarm"
# With dimensions that AWS or the layer publishes: an alarm on others never sees a value.
WATCHED = {
    ("AWS/ApiGateway", "5XXError", "ApiName Stage"),
    ("AWS/ApiGateway", "Count", "ApiName Stage"),
    ("AWS/ApiGateway", "Latency", "ApiName Stage"),
    ("AWS/DynamoDB", "ReadThrottleEvents", "TableName"),
    ("AWS/DynamoDB", "ReadThrottleEvents", "TableName GlobalSecondaryIndexName"),
    ("AWS/DynamoDB", "SystemErrors", "TableName Operation"),
    ("AWS/DynamoDB", "WriteThrottleEvents", "TableName"),
    ("AWS/DynamoDB", "WriteThrottleEvents", "TableName GlobalSecondaryIndexName"),
    ("AWS/Lambda", "Errors", "FunctionName Resource ExecutedVersion"),
    ("AWS/Lambda", "Throttles", "FunctionName Resource"),
    ("AWS/WAFV2", "BlockedRequests", "WebACL Region Rule"),
    ("AnimalStore", "Errors", "Stage Operation Version"),
    ("AnimalStore", "Refused", "Stage"),
}


@pytest.fixture(scope="module")
def alarms(stack: Template) -> dict[str, Any]:
    """Return the alarms by name."""
    return properties_by_name(stack, ALARM)


def dimensions(metric: dict[str, Any]) -> dict[str, Any]:
    """Return the dimensions of an alarm's metric."""
    return {
        each["Name"]: each["Value"]
        for each in metric["MetricStat"]["Metric"]["Dimensions"]
    }


def values_of(alarm: dict[str, Any], dimension: str) -> list[Any]:
    """Return the values that a dimension has in an alarm's metrics."""
    found = [dimensions(metric) for metric in alarm["Metrics"][1:]]
    return [each[dimension] for each in found if dimension in each]


def test_alarms_watch_metrics_that_exist_and_use_each(alarms: dict[str, Any]) -> None:
    watched = set()
    for alarm in alarms.values():
        expression, *metrics = alarm["Metrics"]
        for each in metrics:
            metric = each["MetricStat"]["Metric"]
            names = " ".join(dimensions(each))
            watched.add((metric["Namespace"], metric["MetricName"], names))
            assert each["Id"] in expression["Expression"]
        assert alarm["TreatMissingData"] == "notBreaching"
        # FILL makes the newest period, without data yet, 0: an alarm of it alone never goes off.
        if "FILL(" in expression["Expression"]:
            assert alarm["DatapointsToAlarm"] < alarm["EvaluationPeriods"]
    assert watched == WATCHED


def test_one_alarm_is_for_codedeploy_alone_and_all_others_page(
    stack: Template, alarms: dict[str, Any]
) -> None:
    for group in properties_by_name(stack, "AWS::CodeDeploy::DeploymentGroup").values():
        assert group["AlarmConfiguration"]["Alarms"] == [
            {"Name": {"Ref": "DeploymentAlarm"}}
        ]
        assert "Canary10Percent5Minutes" in json.dumps(group["DeploymentConfigName"])
    silent = {name for name, alarm in alarms.items() if "AlarmActions" not in alarm}
    assert silent == {"DeploymentAlarm"}
    assert alarms["DeploymentAlarm"]["Threshold"] == 0


def test_alarms_watch_every_function_and_every_call_of_dynamodb(
    stack: Template, alarms: dict[str, Any]
) -> None:
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
    groups = [
        {"Ref": name} for name in properties_by_name(stack, "AWS::Logs::LogGroup")
    ]
    assert stack["Outputs"]["LogGroups"]["Value"] == {"Fn::Join": [" ", groups]}, (
        "template.yaml: name every log group in the output LogGroups."
    )


@pytest.mark.parametrize(
    ("name", "values", "goes_off"),
    [
        # one minute
        ("ServerErrorsAlarm", {"errors": 300, "requests": 6000}, True),
        ("ServerErrorsAlarm", {"errors": 20, "requests": 6000}, False),
        # a quarter of an hour
        ("QuietErrorsAlarm", {"errors": 5, "requests": 5}, True),
        ("QuietErrorsAlarm", {"errors": 2, "requests": 2}, False),
        ("QuietErrorsAlarm", {"errors": 3, "requests": 300}, False),
        # five minutes
        ("LatencyAlarm", {"latency": 4000, "requests": 10}, True),
        ("LatencyAlarm", {"latency": 4000, "requests": 5}, False),
        ("FloodAlarm", {"refused": 6000, "blocked": 0}, True),
        ("FloodAlarm", {"refused": 0, "blocked": 6000}, True),
        ("FloodAlarm", {"refused": 300, "blocked": 300}, False),
    ],
)
def test_alarm_goes_off(
    alarms: dict[str, Any], name: str, values: dict[str, Any], goes_off: bool
) -> None:
    functions = {
        "IF": lambda condition, yes, no: yes if condition else no,
        "FILL": lambda value, _: value,
    }
    expression = alarms[name]["Metrics"][0]["Expression"]
    value = eval(expression, functions, values)  # noqa: S307 - the template's own
    assert (value > alarms[name]["Threshold"]) is goes_off


def test_the_flood_alarm_counts_what_the_access_log_has(stack: Template) -> None:
    refused = properties_of(stack, "AWS::Logs::MetricFilter")
    assert refused["FilterPattern"] == '{ ($.status = "401") || ($.status = "429") }'
    (metric,) = refused["MetricTransformations"]
    assert (metric["MetricNamespace"], metric["MetricName"]) == (
        "AnimalStore",
        "Refused",
    )
    assert metric["Dimensions"] == [{"Key": "Stage", "Value": "$.stage"}]
    log = properties_of(stack, "AWS::ApiGateway::Stage")["AccessLogSetting"]["Format"]
    assert json.loads(log).keys() >= {"stage", "status"}


def test_the_dashboard_can_be_drawn_and_shows_every_alarm(
    stack: Template, alarms: dict[str, Any]
) -> None:
    body = properties_of(stack, "AWS::CloudWatch::Dashboard")["DashboardBody"][
        "Fn::Sub"
    ]
    widgets = json.loads(body)["widgets"]
    assert all(widget["x"] + widget["width"] <= 24 for widget in widgets)
    shown = {arn.strip("${}") for arn in widgets[0]["properties"]["alarms"]}
    assert shown == {f"{name}.Arn" for name in alarms}
