"""Whom the alarms tell about each failure of failure_modes.yaml, and after how many minutes."""

import io
import json
import re
from collections import defaultdict
from contextlib import closing, redirect_stdout
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.support import handlers, openapi
from tests.support.alarms import (
    Day,
    Metric,
    Stream,
    counted_by_function,
    counted_in_log,
    metric,
    ringing,
)
from tests.support.clock import install_clock
from tests.support.fault_injection import LOST_REQUEST, Attempt, Fault, FaultyStore
from tests.support.stack import (
    Template,
    block_of,
    properties_by_name,
    properties_of,
    staged,
)
from tools import ROOT

RUNBOOK = (ROOT / "docs/runbook.md").read_text()
MODES = yaml.safe_load(Path(__file__).with_name("failure_modes.yaml").read_text())
RATES = (1 / 60, 60, 30_000)  # requests a minute
SHARES = {"listPets": 0.39, "createPet": 0.01, "getPet": 0.6}
CANARY_SHARE, CHECK_RATE = (
    0.1,
    60,
)  # the suite that checks a deployment asks once a second
BEFORE, AFTER = -7 * 60, 13 * 60
GOOD, REFUSED = {"status": 200}, {"status": 401, "integration.status": "401"}
Counts = list[tuple[Metric, float]]
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
    return list(counted_by_function(json.loads(output.getvalue().splitlines()[-1])))


def counted_by_gateway(
    template: Template, operation: openapi.Operation, answer: Mode
) -> Counts:
    """Return what API Gateway and its access log count for a request that gets an answer."""
    if not answer:
        return []
    api = properties_of(template, "AWS::Serverless::Api")
    route = {"httpMethod": operation.method, "resourcePath": f"/v1{operation.path}"}
    context = {"stage": api["StageName"], "responseLatency": 20, **route, **answer}
    log = re.sub(
        r"\$context\.([\w.]+)",
        lambda found: str(context.get(found[1], "-")),
        api["AccessLogSetting"]["Format"],
    )
    # api-gateway-metrics-and-dimensions.html in API Gateway's guide
    stage = {"ApiName": api["Name"], "Stage": api["StageName"]}
    count = metric("AWS/ApiGateway", "Count", stage), 1.0
    return [count, *counted_in_log(template, json.loads(log))]


def counted_by_version(function: str, event: str, status: int) -> Counts:
    """Return what counts for the newest version when it answers so."""
    if status == 503:
        return counted_by(function, event.replace("heartbeat-", ""), LOST_REQUEST)
    # monitoring-metrics-view.html in Lambda's guide
    version = {"ExecutedVersion": f"{function}.Version.Version"}
    of = {"FunctionName": function, "Resource": f"{function}:live", **version}
    return [(metric("AWS/Lambda", "Errors", of), status == 502)]


def day_of(template: Template, mode: Mode, rate: float, until: int = AFTER) -> Day:
    """Make the metrics of a day on which a failure begins at minute 0."""
    share = mode.get("share", 1 if "answer" in mode else 0)
    if "canary" in mode:
        share, rate = CANARY_SHARE, rate + CHECK_RATE
    met = mode.get("operations") or [each.id for each in openapi.operations()]
    day: Day = defaultdict(list)
    for operation in openapi.operations():
        function = f"{block_of(operation.id)}Function"
        failing = mode if operation.id in met else {}
        answer = failing.get("answer", GOOD)
        rule = template["Resources"][f"{block_of(operation.id)}Heartbeat"]["Properties"]
        event = rule["Targets"][0]["Input"]
        beat_rate = 1 / int(re.sub(r"\D", "", rule["ScheduleExpression"]))
        requests = rate * SHARES.get(operation.id, 0.01)
        strangers = 60 * failing.get("strangers", 0) / len(met)
        good, refused, bad = (
            counted_by_gateway(template, operation, each)
            for each in (GOOD, REFUSED, answer)
        )
        if "canary" in failing:
            bad = bad + counted_by_version(function, event, answer["status"])
        beats = counted_by(function, event)
        well = [(good, requests), (beats, beat_rate)]
        ill = [(good, requests * (1 - share)), (bad, requests * share)]
        ill += [(refused, strangers), (beats, 0 if "silent" in failing else beat_rate)]
        for streams, start, end in (
            (well, BEFORE, 0),
            (ill, 0, until),
            (well, until, AFTER),
        ):
            for counts, per_minute in streams:
                for counted, value in counts:
                    day[counted].append(Stream(value, per_minute, start, end))
    return day


def told(template: Template, day: Day) -> str:
    """Say which alarms tell somebody, and after how many minutes; Deployment tells CodeDeploy."""
    first: dict[str, int] = {}
    for name, minutes in ringing(template, day).items():
        alarm = template["Resources"][name]["Properties"]
        is_mailed = (
            alarm.get("AlarmActions") == alarm.get("OKActions") == ["AlarmTopic"]
        )
        if minutes and (is_mailed or "DeploymentAlarm" in name):
            kind = re.findall("[A-Z][a-z]+", name)[-2]
            first[kind] = min(first.get(kind, AFTER), *minutes)
    said = [f"{kind} {first[kind]}" for kind in sorted(first, key=first.__getitem__)]
    return ", ".join(said) or "nobody"


@pytest.mark.parametrize("mode", MODES, ids=[mode["failure"] for mode in MODES])
def test_a_failure_is_told(mode: Mode) -> None:
    cells = [told(PRODUCTION, day_of(PRODUCTION, mode, rate)) for rate in RATES]

    assert cells == mode["told"]
    assert ("nobody" in cells) is ("because" in mode)


def test_the_runbook_shows_whom_failures_wake() -> None:
    table = RUNBOOK.partition("| Failure ")[2].partition("\n\n")[0]
    rows = [
        f"| {' | '.join([m['failure'], *m['told'], m.get('because', '')])} |"
        for m in MODES
    ]

    shown = table.splitlines()[2:]

    assert set(shown) <= set(rows)
    assert 10 <= len(shown) <= 15


@openapi.each_operation
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ({"share": 0.008, "answer": {"status": 503}}, "Objective 275"),
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
    ("mode", "alarm", "last"),
    [
        ({"answer": {"status": 503}}, "ObjectiveAlarm", 44),
        ({"silent": True}, "HeartbeatAlarm", 34),
        ({"answer": {"status": 401, "integration.status": "401"}}, "RefusalsAlarm", 37),
        ({"canary": True, "answer": {"status": 502}}, "ListPetsDeploymentAlarm", 32),
    ],
)
def test_an_alarm_is_over_soon_after_the_failure(
    mode: Mode, alarm: str, last: int
) -> None:
    day = day_of(PRODUCTION, mode, 60, until=30)

    assert max(ringing(PRODUCTION, day)[alarm]) == last


def test_staging_has_only_what_costs_little() -> None:
    assert told(STAGING, day_of(STAGING, {"silent": True}, 60)) == "Heartbeat 15"
    kinds = {
        resource["Type"].partition("::")[2]
        for resource in STAGING["Resources"].values()
    }
    assert not kinds & {
        "CloudWatch::CompositeAlarm",
        "CloudWatch::Dashboard",
        "WAFv2::WebACL",
    }


@pytest.mark.parametrize(
    ("template", "of_each", "of_all"), [(PRODUCTION, 7, 2), (STAGING, 3, 0)]
)
def test_alarms_cost_little_and_stay_within_cloudwatchs_limits(
    template: Template, of_each: int, of_all: int
) -> None:
    alarms = properties_by_name(template, "AWS::CloudWatch::Alarm").values()

    metrics = [len(alarm.get("Metrics", "12")) - 1 for alarm in alarms]

    assert (
        sum(metrics) == of_each * len(openapi.operations()) + of_all
    )  # $0.10 a month each
    assert max(metrics) <= 10  # of an expression
    assert len(metrics) <= 100  # of a composite


def test_the_dashboard_shows_every_page_and_function() -> None:
    text = properties_of(PRODUCTION, "AWS::CloudWatch::Dashboard")["DashboardBody"]

    assert json.loads(text)["widgets"][0]["properties"]["alarms"] == [
        "ObjectiveAlarm.Arn",
        "HeartbeatAlarm.Arn",
        "RefusalsAlarm.Arn",
    ]
    for operation in openapi.operations():
        assert f'"{block_of(operation.id)}Function:live"' in text, (
            "template.yaml: Dashboard"
        )
