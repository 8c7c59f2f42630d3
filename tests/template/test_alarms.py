"""Production's alarms and metric filters, compared with the rows of alarms.yaml."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract import openapi
from tests.support.stack import read_stage
from tools import ROOT
from tools.local.template import properties_by_name

FOLDER = Path(__file__).parent
ACCESS_LOG = yaml.safe_load((FOLDER / "access_log.yaml").read_text())
STACK = read_stage(**{"AWS::StackName": "animal-store-production"})
FILTERS = properties_by_name(STACK, "AWS::Logs::MetricFilter")
RESOURCES = FILTERS | properties_by_name(STACK, "AWS::CloudWatch::Alarm")
RESOURCES |= properties_by_name(STACK, "AWS::CloudWatch::CompositeAlarm")


def read_expected_resources(operation: openapi.Operation) -> Any:
    """Read alarms.yaml, with an operation's names in place of BLOCK, OPERATION and so on."""
    text = (FOLDER / "alarms.yaml").read_text()
    text = text.replace("BLOCK", operation.block).replace("OPERATION", operation.id)
    text = text.replace("METHOD", operation.method)
    text = text.replace("RESOURCE", f"/v1{operation.path}")
    return yaml.load(text, yaml.CSafeLoader)  # the loader in C is several times as fast


EXPECTED_ALARMS_AND_FILTERS: dict[str, Any] = read_expected_resources(
    openapi.OPERATIONS[0]
)["Stage"]
for operation in openapi.OPERATIONS:
    for kind, row in read_expected_resources(operation)["Operation"].items():
        EXPECTED_ALARMS_AND_FILTERS[operation.block + kind] = row


@pytest.mark.parametrize("name", EXPECTED_ALARMS_AND_FILTERS)
def test_alarm_or_filter_has_the_listed_properties(name: str) -> None:
    assert name in RESOURCES, f"template.yaml lacks {name}: copy an operation's block"
    properties = dict(RESOURCES[name])
    for text in ("AlarmDescription", "AlarmRule", "FilterPattern"):
        properties.pop(text, None)

    assert properties == EXPECTED_ALARMS_AND_FILTERS[name]


@pytest.mark.parametrize("alarm", ["ObjectiveAlarm", "HeartbeatAlarm"])
def test_composite_alarm_combines_all_operations(alarm: str) -> None:
    """The rule lists the operations in openapi.yaml's order."""
    parts = [
        read_expected_resources(each)["Composite"][alarm] for each in openapi.OPERATIONS
    ]
    assert RESOURCES[alarm]["AlarmRule"] == " OR ".join(parts)


def test_alarms_yaml_lists_every_alarm_and_filter() -> None:
    assert RESOURCES.keys() == EXPECTED_ALARMS_AND_FILTERS.keys()


def test_runbook_has_a_section_for_each_alarm_that_sends_mail() -> None:
    runbook = (ROOT / "docs/runbook.md").read_text()
    for name, row in EXPECTED_ALARMS_AND_FILTERS.items():
        if "AlarmActions" in row:
            assert f"\n### {name}" in runbook


def matches(pattern: str, line: dict[str, Any]) -> bool:
    """Evaluate a filter pattern of the form that template.yaml uses.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
    """
    expression = pattern.strip("{} ").replace("&&", "and").replace("||", "or")
    expression = re.sub(r'\$\.(\w+) = "([^"]*)\*"', r'\1.startswith("\2")', expression)
    expression = expression.replace("$.", "").replace(" = ", " == ")
    return bool(eval(expression, {}, line))  # noqa: S307 - the template's own text


@pytest.mark.parametrize("case", ACCESS_LOG["cases"])
def test_access_log_line_is_counted_by_the_listed_filters(case: str) -> None:
    expected, members = ACCESS_LOG["cases"][case]
    line = ACCESS_LOG["line"] | members

    counting_filters = [
        name for name in FILTERS if matches(FILTERS[name]["FilterPattern"], line)
    ]

    assert counting_filters == expected


def test_sample_log_line_has_the_fields_of_the_format() -> None:
    api = STACK["Resources"]["Api"]["Properties"]
    format_with_zeros = re.sub(r":(\$[\w.]+)", r":0", api["AccessLogSetting"]["Format"])
    assert json.loads(format_with_zeros).keys() == ACCESS_LOG["line"].keys()
