"""Whom the alarms tell about each failure of failure_modes.yaml, and after how many minutes."""

import json
import re
from typing import Any

import pytest
import yaml

from tests.support import openapi
from tests.support.alarms import Day, Stream, counted_in_log, ringing
from tests.support.stack import block_of, properties_by_name, staged
from tools import ROOT

MODES = yaml.safe_load((ROOT / "tests/template/failure_modes.yaml").read_text())
RATES = (1 / 60, 60, 30_000)  # requests a minute
SHARES = {"listPets": 0.39, "createPet": 0.01, "getPet": 0.6}
assert SHARES.keys() <= {each.id for each in openapi.operations()}, "see SHARES"
REFUSED = {"status": 401, "integration.status": "401"}
PRODUCTION = staged()
API = PRODUCTION["Resources"]["Api"]["Properties"]
Mode = dict[str, Any]


def answers(
    operation: openapi.Operation, answer: Mode, before: float, after: float
) -> Day:
    """Return what API Gateway and its access log count for requests that get an answer."""
    context = {
        "stage": "production",
        "httpMethod": operation.method,
        "resourcePath": f"/v1{operation.path}",
        "responseLatency": 20,
        **answer,
    }
    log = re.sub(
        r"\$context\.([\w.]+)",
        lambda found: str(context.get(found[1], "-")),
        API["AccessLogSetting"]["Format"],
    )
    counts = counted_in_log(PRODUCTION, json.loads(log))
    # api-gateway-metrics-and-dimensions.html in API Gateway's guide
    stage = {"ApiName": API["Name"], "Stage": "production"}
    counts.append((("AWS/ApiGateway", "Count", stage), 1))
    return [Stream(metric, value, before, after) for metric, value in counts]


def failures_of_version(operation: openapi.Operation, status: int, rate: float) -> Day:
    """Return what Lambda and the function itself count when its newest version answers so."""
    function = f"{block_of(operation.id)}Function"
    version = f"{function}.Version.Version"
    metrics = {
        # monitoring-metrics-view.html in Lambda's guide
        502: (
            "AWS/Lambda",
            "Errors",
            {
                "FunctionName": function,
                "Resource": f"{function}:live",
                "ExecutedVersion": version,
            },
        ),
        503: (
            "AnimalStore",
            "Errors",
            {"Stage": "production", "Operation": operation.id, "Version": version},
        ),
    }
    return [Stream(metrics[status], 1, 0, rate)] if status in metrics else []


def day_of(mode: Mode, rate: float) -> Day:
    """Make the traffic of a day on which a failure begins at minute 0."""
    rate += mode.get("checks", 0)
    day = []
    for operation in openapi.operations():
        met = mode if operation.id in mode.get("operations", [operation.id]) else {}
        requests = rate * SHARES.get(operation.id, 0.01)
        failed = requests * met.get("share", 0)
        day += answers(operation, {"status": 200}, requests, requests - failed)
        if "answer" in met:
            day += answers(operation, met["answer"], 0, failed)
        if "checks" in met:
            day += failures_of_version(operation, met["answer"]["status"], failed)
        day += answers(operation, REFUSED, 0, 60 * met.get("strangers", 0))
        # unit/test_roles.py sees that the heartbeat makes the function count this.
        refused = {
            "Stage": "heartbeat-production",
            "Operation": operation.id,
            "Code": "unauthorized",
        }
        metric = "AnimalStore", "Errors", refused
        day.append(Stream(metric, 1, 0.2, 0 if "silent" in met else 0.2))
    return day


def told(day: Day) -> str:
    """Say which alarms tell somebody, and after how many minutes; Deployment tells CodeDeploy."""
    first: dict[str, int] = {}
    for name, minutes in ringing(PRODUCTION, day).items():
        alarm = PRODUCTION["Resources"][name]["Properties"]
        mails = alarm.get("AlarmActions") == alarm.get("OKActions") == ["AlarmTopic"]
        is_deployment = name.endswith("DeploymentAlarm")
        if minutes and (mails or is_deployment):
            kind = "Deployment" if is_deployment else name.removesuffix("Alarm")
            first[kind] = min(first.get(kind, 999), *minutes)
    said = [f"{kind} {first[kind]}" for kind in sorted(first, key=first.__getitem__)]
    return ", ".join(said) or "nobody"


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode["failure"])
def test_a_failure_is_told(mode: Mode) -> None:
    cells = [told(day_of(mode, rate)) for rate in RATES]

    assert cells == mode["told"]


def test_the_runbook_shows_whom_failures_wake_and_each_alarm_that_mails() -> None:
    text = (ROOT / "docs/runbook.md").read_text()
    shown = text.partition("| Failure ")[2].partition("\n\n")[0].splitlines()[2:]
    rows = set()
    for mode in MODES:
        cells = [mode["failure"], *mode["told"], mode.get("because", "")]
        rows.add(f"| {' | '.join(cells)} |")

    assert shown
    assert set(shown) <= rows
    for name, each in PRODUCTION["Resources"].items():
        if each.get("Properties", {}).get("AlarmActions") == ["AlarmTopic"]:
            assert f"{name.removesuffix('Alarm')} " in str(MODES), "failure_modes.yaml"
            assert f"\n### {name}" in text


@openapi.each_operation
@pytest.mark.parametrize(
    ("failure", "change"),
    [
        ("0.8 % of the requests fail", {"answer": {"status": 500}}),
        ("the functions' lines are not written, or not read", {}),
        ("the new version crashes", {}),
        ("the new version crashes", {"answer": {"status": 503}}),
    ],
)
def test_alarms_watch_each_operation(
    operation: openapi.Operation, failure: str, change: Mode
) -> None:
    [mode] = [each for each in MODES if each["failure"] == failure]
    day = day_of(mode | change | {"operations": [operation.id]}, RATES[-1])

    assert told(day) == mode["told"][-1], (
        f"template.yaml: let ObjectiveAlarm and HeartbeatAlarm name the alarms of {operation.id}, "
        "or correct failure_modes.yaml."
    )


def test_an_hour_after_a_failure_nobody_is_paged() -> None:
    failing = day_of({"share": 1, "answer": {"status": 503}, "silent": True}, 60)
    recovered = [
        each._replace(before=each.after, after=each.before) for each in failing
    ]

    minutes = ringing(PRODUCTION, recovered)

    assert 60 not in minutes["ObjectiveAlarm"] | minutes["HeartbeatAlarm"]


def test_no_alarm_has_more_metrics_than_cloudwatch_takes() -> None:
    for alarm in properties_by_name(PRODUCTION, "AWS::CloudWatch::Alarm").values():
        assert len(alarm.get("Metrics", [])[1:]) <= 10
