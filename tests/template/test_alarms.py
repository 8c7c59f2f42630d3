"""Production's alarms and metric filters, compared with the rows of alarms.yaml."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import openapi
from tests.support.stack import block_of, properties_by_name, staged
from tools import ROOT

HERE = Path(__file__).parent
ROWS_TEXT = (HERE / "alarms.yaml").read_text()
ROWS = yaml.safe_load(ROWS_TEXT)
ACCESS_LOG = yaml.safe_load((HERE / "access_log.yaml").read_text())
PRODUCTION = staged(**{"AWS::StackName": "animal-store-production"})
ALARMS = properties_by_name(PRODUCTION, "AWS::CloudWatch::Alarm")
COMPOSITES = properties_by_name(PRODUCTION, "AWS::CloudWatch::CompositeAlarm")
FILTERS = properties_by_name(PRODUCTION, "AWS::Logs::MetricFilter")
FORMAT = PRODUCTION["Resources"]["Api"]["Properties"]["AccessLogSetting"]["Format"]


def rows_of(operation: openapi.Operation) -> Any:
    """Return the rows with an operation's names in the place of BLOCK and the others."""
    text = ROWS_TEXT.replace("BLOCK", block_of(operation.id))
    text = text.replace("OPERATION", operation.id)
    text = text.replace("METHOD", operation.method)
    return yaml.safe_load(text.replace("RESOURCE", f"/v1{operation.path}"))


def row(alarm: dict[str, Any]) -> dict[str, Any]:
    """Return what a row has of an alarm's properties."""
    return {
        name: value
        for name, value in alarm.items()
        if name not in {"AlarmDescription", "AlarmRule"} and value != "AWS::NoValue"
    }


def matches(pattern: str, line: dict[str, Any]) -> bool:
    """Evaluate a filter pattern of the form that template.yaml uses.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
    """
    expression = pattern.strip("{} ").replace("&&", "and").replace("||", "or")
    expression = re.sub(r'\$\.(\w+) = "([^"]*)\*"', r'\1.startswith("\2")', expression)
    expression = expression.replace("$.", "").replace(" = ", " == ")
    return bool(eval(expression, {}, line))  # noqa: S307 - the template's own text


@openapi.each_operation
@pytest.mark.parametrize("kind", ROWS["Operation"])
def test_alarm_of_an_operation(operation: openapi.Operation, kind: str) -> None:
    alarm = ALARMS[f"{block_of(operation.id)}{kind}"]
    assert row(alarm) == rows_of(operation)["Operation"][kind]


@pytest.mark.parametrize("name", ROWS["Stage"])
def test_alarm_of_the_stage(name: str) -> None:
    assert row((ALARMS | COMPOSITES)[name]) == ROWS["Stage"][name]


def test_no_alarm_is_without_a_row() -> None:
    names = {*ROWS["Stage"]}
    for operation in openapi.OPERATIONS:
        names |= {f"{block_of(operation.id)}{kind}" for kind in ROWS["Operation"]}
    assert {*ALARMS, *COMPOSITES} == names


@pytest.mark.parametrize("name", ROWS["Composite"])
def test_composite_alarm_names_each_operation(name: str) -> None:
    parts = [rows_of(operation)["Composite"][name] for operation in openapi.OPERATIONS]
    assert COMPOSITES[name]["AlarmRule"] == " OR ".join(parts), (
        f"template.yaml: let {name} name each operation's alarms, in the order of openapi.yaml."
    )


@pytest.mark.parametrize("name", FILTERS)
def test_metric_filter_counts(name: str) -> None:
    assert FILTERS[name]["LogGroupName"] == "AccessLogGroup"
    assert FILTERS[name]["MetricTransformations"] == [ROWS["Filter"][name]]


@pytest.mark.parametrize("case", ACCESS_LOG["cases"])
def test_metric_filters_match_a_line(case: str) -> None:
    line = ACCESS_LOG["line"] | ACCESS_LOG["cases"][case]["line"]
    matching = [
        name for name in FILTERS if matches(FILTERS[name]["FilterPattern"], line)
    ]
    assert matching == ACCESS_LOG["cases"][case]["filters"]


def test_access_log_has_the_members_of_the_sample_lines() -> None:
    numbers = re.sub(r":(\$[\w.]+)", r":0", FORMAT)
    assert json.loads(numbers).keys() == ACCESS_LOG["line"].keys()


def test_runbook_explains_each_alarm_that_tells_somebody() -> None:
    runbook = (ROOT / "docs/runbook.md").read_text()
    for name, alarm in (ALARMS | COMPOSITES).items():
        if "AlarmActions" in row(alarm):
            assert f"\n### {name}" in runbook
