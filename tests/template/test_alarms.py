"""Whom the alarms tell about each failure of failure_modes.yaml, and after how many minutes."""

import io
import json
import re
from contextlib import closing, redirect_stdout
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.support import handlers, openapi
from tests.support.alarms import (
    Counts,
    Day,
    Stream,
    counted_by_function,
    counted_in_log,
    ringing,
)
from tests.support.clock import install_clock
from tests.support.fault_injection import LOST_REQUEST, Attempt, Fault, FaultyStore
from tests.support.stack import Template, block_of, properties_by_name, staged
from tools import ROOT

MODES = yaml.safe_load(Path(__file__).with_name("failure_modes.yaml").read_text())
RATES = (1 / 60, 60, 30_000)  # requests a minute
SHARES = {"listPets": 0.39, "createPet": 0.01, "getPet": 0.6}
CANARY_SHARE = 0.1
CHECK_RATE = 60  # the suite that checks a deployment asks once a second
GOOD, REFUSED = {"status": 200}, {"status": 401, "integration.status": "401"}
Mode = dict[str, Any]
PRODUCTION, STAGING = staged(), staged("staging")


@cache
def counted_by(
    function: str, event: str, otherwise: Fault = Attempt.carry_out
) -> Counts:
    """Return what the line of a function's newest version counts, whose store does so."""
    output = io.StringIO()
    with (
        closing(FaultyStore(otherwise)),
        redirect_stdout(output),
        pytest.MonkeyPatch.context() as patch,
    ):
        install_clock(patch)
        patch.setenv("AWS_LAMBDA_FUNCTION_VERSION", f"{function}.Version.Version")
        context = SimpleNamespace(get_remaining_time_in_millis=lambda: 10_000)
        handlers.handler(function)(json.loads(event), context)
    # An exception's line comes before it.
    return counted_by_function(json.loads(output.getvalue().splitlines()[-1]))


def counted_by_gateway(
    template: Template, operation: openapi.Operation, answer: Mode
) -> Counts:
    """Return what API Gateway and its access log count for a request that gets an answer."""
    if not answer:
        return []
    api = template["Resources"]["Api"]["Properties"]
    route = {"httpMethod": operation.method, "resourcePath": f"/v1{operation.path}"}
    context = {"stage": api["StageName"], "responseLatency": 20, **route, **answer}
    log = re.sub(
        r"\$context\.([\w.]+)",
        lambda found: str(context.get(found[1], "-")),
        api["AccessLogSetting"]["Format"],
    )
    # api-gateway-metrics-and-dimensions.html in API Gateway's guide
    stage = {"ApiName": api["Name"], "Stage": api["StageName"]}
    count = ("AWS/ApiGateway", "Count", stage), 1.0
    return [count, *counted_in_log(template, json.loads(log))]


def counted_by_version(function: str, event: str, status: int) -> Counts:
    """Return what counts for the newest version when it answers so."""
    if status == 503:
        return counted_by(function, event.replace("heartbeat-", ""), LOST_REQUEST)
    # monitoring-metrics-view.html in Lambda's guide
    version = {"ExecutedVersion": f"{function}.Version.Version"}
    of = {"FunctionName": function, "Resource": f"{function}:live", **version}
    return [(("AWS/Lambda", "Errors", of), status == 502)]


def day_of(template: Template, mode: Mode, rate: float) -> Day:
    """Make the traffic of a day on which a failure begins at minute 0."""
    share = mode.get("share", 1 if "answer" in mode else 0)
    if "canary" in mode:
        share, rate = CANARY_SHARE, rate + CHECK_RATE
    met = mode.get("operations") or [each.id for each in openapi.operations()]
    day = []
    for operation in openapi.operations():
        function = f"{block_of(operation.id)}Function"
        failing = mode if operation.id in met else {}
        answer = failing.get("answer", GOOD)
        heartbeat = template["Resources"][f"{block_of(operation.id)}Heartbeat"]
        event = heartbeat["Properties"]["Targets"][0]["Input"]
        requests = rate * SHARES.get(operation.id, 0.01)
        failed = requests * share if failing else 0
        strangers = 60 * failing.get("strangers", 0) / len(met)
        counts = counted_by_gateway(template, operation, answer)
        if "canary" in failing:
            counts = counts + counted_by_version(function, event, answer["status"])
        good, refused = (
            counted_by_gateway(template, operation, each) for each in (GOOD, REFUSED)
        )
        day += [
            Stream(good, requests, requests - failed),
            Stream(counts, 0, failed),
            Stream(refused, 0, strangers),
            # Every five minutes.
            Stream(counted_by(function, event), 0.2, 0 if "silent" in failing else 0.2),
        ]
    return day


def told(template: Template, day: Day) -> str:
    """Say which alarms tell somebody, and after how many minutes; Deployment tells CodeDeploy."""
    first: dict[str, int] = {}
    for name, minutes in ringing(template, day).items():
        alarm = template["Resources"][name]["Properties"]
        mails = alarm.get("AlarmActions") == alarm.get("OKActions") == ["AlarmTopic"]
        if minutes and (mails or "DeploymentAlarm" in name):
            kind = re.findall("[A-Z][a-z]+", name)[-2]
            first[kind] = min(first.get(kind, 999), *minutes)
    said = [f"{kind} {first[kind]}" for kind in sorted(first, key=first.__getitem__)]
    return ", ".join(said) or "nobody"


@pytest.mark.parametrize("mode", MODES, ids=[mode["failure"] for mode in MODES])
def test_a_failure_is_told(mode: Mode) -> None:
    cells = [told(PRODUCTION, day_of(PRODUCTION, mode, rate)) for rate in RATES]

    assert cells == mode["told"]
    assert ("nobody" in cells) is ("because" in mode)


def test_the_runbook_shows_whom_failures_wake() -> None:
    text = (ROOT / "docs/runbook.md").read_text()
    table = text.partition("| Failure ")[2].partition("\n\n")[0]
    rows = []
    for mode in MODES:
        cells = [mode["failure"], *mode["told"], mode.get("because", "")]
        rows.append(f"| {' | '.join(cells)} |")

    shown = table.splitlines()[2:]

    assert 10 <= len(shown) <= 15
    assert set(shown) <= set(rows)


@openapi.each_operation
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ({"share": 0.008, "answer": {"status": 503}}, "Objective 285"),
        ({"silent": True}, "Heartbeat 15"),
        ({"canary": True, "answer": {"status": 502}}, "Deployment 1, Objective 9"),
        ({"canary": True, "answer": {"status": 503}}, "Deployment 1, Objective 9"),
    ],
    ids=["0.8 %", "silent", "crash", "store"],
)
def test_alarms_watch_each_operation(
    operation: openapi.Operation, mode: Mode, expected: str
) -> None:
    day = day_of(PRODUCTION, mode | {"operations": [operation.id]}, 30_000)

    assert told(PRODUCTION, day) == expected, (
        f"template.yaml: let ObjectiveAlarm and HeartbeatAlarm name the alarms of {operation.id}."
    )


@pytest.mark.parametrize(
    "mode", [{"answer": {"status": 503}}, {"silent": True}, {"answer": REFUSED}]
)
def test_an_hour_after_a_failure_no_alarm_pages(mode: Mode) -> None:
    failing = day_of(PRODUCTION, mode, 60)
    recovered = [Stream(each.counts, each.after, each.before) for each in failing]

    minutes = ringing(PRODUCTION, recovered)

    for name in ("ObjectiveAlarm", "HeartbeatAlarm", "RefusalsAlarm"):
        assert 60 not in minutes[name]


def test_staging_tells_of_a_silent_function() -> None:
    assert told(STAGING, day_of(STAGING, {"silent": True}, 60)) == "Heartbeat 15"


@pytest.mark.parametrize(("template", "per_operation"), [(PRODUCTION, 8), (STAGING, 3)])
def test_alarms_cost_little(template: Template, per_operation: int) -> None:
    alarms = properties_by_name(template, "AWS::CloudWatch::Alarm").values()
    metrics = [len(alarm.get("Metrics", [])[1:]) or 1 for alarm in alarms]

    # $0.10 a month each; CloudWatch takes at most 10 in an alarm.
    assert sum(metrics) <= per_operation * len(openapi.operations())
    assert max(metrics) <= 10
