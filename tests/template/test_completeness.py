"""What has to grow with the functions, and is easily forgotten: alarms for all of them, and the reduced SDK."""

import json
from typing import Any

import pytest

from tests.template.conftest import Template
from tools.packaging.sdk_data import OPERATIONS


def alarm_dimensions(stack: Template, alarm: str, dimension: str) -> set[str]:
    """The values of one dimension of an alarm's metrics; references by the name that they refer to."""
    values = set()
    for metric in stack["Resources"][alarm]["Properties"]["Metrics"]:
        for pair in metric.get("MetricStat", {"Metric": {"Dimensions": []}})["Metric"]["Dimensions"]:
            if pair["Name"] == dimension:
                values.add(pair["Value"]["Ref"] if isinstance(pair["Value"], dict) else pair["Value"])
    return values


@pytest.mark.parametrize("alarm", ["FunctionThrottlesAlarm", "FunctionDurationAlarm"])
def test_the_alarms_for_all_functions_watch_every_function(stack: Template, alarm: str) -> None:
    functions = {name for name, resource in stack["Resources"].items() if resource["Type"] == "AWS::Lambda::Function"}

    assert alarm_dimensions(stack, alarm, "FunctionName") == functions


@pytest.mark.parametrize("alarm", ["FunctionThrottlesAlarm", "FunctionDurationAlarm", "TableErrorsAlarm"])
def test_every_metric_of_an_alarm_is_in_its_expression(stack: Template, alarm: str) -> None:
    metrics = stack["Resources"][alarm]["Properties"]["Metrics"]

    (expression,) = (metric["Expression"] for metric in metrics if "Expression" in metric)

    for metric in metrics:
        if "MetricStat" in metric:
            assert metric["Id"] in expression


def test_what_the_roles_allow_is_in_the_reduced_sdk(stack: Template) -> None:
    roles = (resource for resource in stack["Resources"].values() if resource["Type"] == "AWS::IAM::Role")
    allowed: set[str] = set()
    for role in roles:
        for policy in role["Properties"].get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                allowed |= {action for action in _list(statement["Action"]) if action.startswith("dynamodb:")}

    missing = {action.removeprefix("dynamodb:") for action in allowed} - set(OPERATIONS)

    assert not missing, f"{json.dumps(sorted(missing))} missing in tools/packaging/sdk_data.py"


def test_the_alarm_on_dynamodbs_errors_watches_what_is_called(stack: Template) -> None:
    assert alarm_dimensions(stack, "TableErrorsAlarm", "Operation") == set(OPERATIONS)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
