"""What the runbook names exists: alarms, widgets of the dashboard, and AWS' commands."""

import boto3
import pytest

from tests.support.stack import Template, parameters, properties_by_name, properties_of
from tools import ROOT
from tools.deployment.stage import client
from tools.packaging.translate import translate

RUNBOOK = (ROOT / "docs/runbook.md").read_text()
LINES = RUNBOOK.splitlines()
WORDS = RUNBOOK.split()
AWS_COMMANDS = {
    f"{service} {operation}"
    for program, service, operation in zip(WORDS, WORDS[1:], WORDS[2:], strict=False)
    if program.endswith("aws") and service in boto3.Session().get_available_services()
}


@pytest.fixture(scope="module")
def stack() -> Template:
    return translate(parameters("production"))


def test_each_alarm_has_a_section(stack: Template) -> None:
    headings = [line.removeprefix("### ") for line in LINES if line.startswith("### ")]
    named = [name for name in ", ".join(headings).split(", ") if name.endswith("Alarm")]
    assert sorted(named) == sorted(properties_by_name(stack, "AWS::CloudWatch::Alarm"))


def test_each_widget_is_explained(stack: Template) -> None:
    body = properties_of(stack, "AWS::CloudWatch::Dashboard")["DashboardBody"][
        "Fn::Sub"
    ]
    for text in body.split('"title": "')[1:]:
        title = text.partition('"')[0]
        assert f"\n| {title} |" in RUNBOOK


@pytest.mark.parametrize("command", sorted(AWS_COMMANDS))
def test_aws_has_each_command(command: str) -> None:
    service, operation = command.split()
    operations = client(service, region_name="eu-central-1").meta.method_to_api_mapping
    known = {name.replace("_", "-") for name in operations}
    assert operation in known | {"wait"}
