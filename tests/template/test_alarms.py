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
from tests.support.fault_injection import (
    DENIED,
    LOST_REQUEST,
    SERVER_ERROR,
    THROTTLED,
    Attempt,
    Fault,
    FaultyStore,
    error,
)
from tests.support.stack import (
    Template,
    block,
    decided,
    parameters,
    production,
    properties_by_name,
    properties_of,
)
from tools import ROOT

RUNBOOK = (ROOT / "docs/runbook.md").read_text()
MODES = yaml.safe_load(Path(__file__).with_name("failure_modes.yaml").read_text())
RATES = (1 / 60, 60, 30_000)  # requests a minute
SHARES = {"listPets": 0.39, "createPet": 0.01, "getPet": 0.6}
KINDS = ("Deployment", "Heartbeat", "Objective", "Refusals")
FAULTS: dict[str, Fault] = {
    "throttled": THROTTLED,
    "fails": SERVER_ERROR,
    "lost": LOST_REQUEST,
    "denied": DENIED,
    "gone": error(400, "ResourceNotFoundException"),
}
CANARY_SHARE, CHECK_RATE = (
    0.1,
    60,
)  # the suite that checks a deployment asks once a second
BEFORE, AFTER = -7 * 60, 13 * 60
CONTEXT = SimpleNamespace(get_remaining_time_in_millis=lambda: 10_000)
Counts = list[tuple[Metric, float]]
Mode = dict[str, Any]
TEMPLATE = production(Stage="staging")  # production's, with the stage in `events/`
STAGING = decided("template.yaml", **parameters("staging"))


@cache
def answer_of(
    function: str, event: str, version: str, *store: str
) -> tuple[int, Counts]:
    """Return the status of a function's answer, and what its line counts."""
    call, table, kind = store or ("no call", "", "lost")

    def answer(attempt: Attempt) -> Any:
        asked = f"{attempt.event_name} {attempt.request.body!r}"
        fails = call in asked and table in asked
        return FAULTS[kind](attempt) if fails else attempt.carry_out()

    output = io.StringIO()
    with (
        closing(FaultyStore(answer)),
        redirect_stdout(output),
        pytest.MonkeyPatch.context() as patch,
    ):
        install_clock(patch)
        patch.setenv("AWS_LAMBDA_FUNCTION_VERSION", version)
        answered = handlers.handler(function)(json.loads(event), CONTEXT)
    # An exception's line comes before it.
    line = json.loads(output.getvalue().splitlines()[-1])
    return answered["statusCode"], list(counted_by_function(line))


def counted_by_gateway(
    template: Template, operation: openapi.Operation, answer: Mode
) -> Counts:
    """Return what API Gateway and its access log count for a request that gets an answer."""
    api = properties_of(template, "AWS::Serverless::Api")
    context = {
        "httpMethod": operation.method,
        "resourcePath": f"/v1{operation.path}",
        "stage": api["StageName"],
        "responseLatency": 20,
        **answer,
    }
    text = re.sub(
        r"\$context\.([\w.]+)",
        lambda found: str(context.get(found[1], "-")),
        api["AccessLogSetting"]["Format"],
    )
    # api-gateway-metrics-and-dimensions.html in API Gateway's guide
    stage = {"ApiName": api["Name"], "Stage": api["StageName"]}
    count = (metric("AWS/ApiGateway", "Count", stage), 1.0)
    return [count, *counted_in_log(template, json.loads(text))]


def outcome(
    template: Template, operation: openapi.Operation, mode: Mode
) -> tuple[Counts, Counts]:
    """Return what a request that meets a failure counts, and what the heartbeat counts then."""
    name = block(operation.id)
    function = f"{name}Function"
    version = f"{function}.Version.Version" if "canary" in mode else "the old one"
    store = mode.get("store", [])
    successes = [handlers.EVENTS[each] for each in handlers.SUCCESSES]
    events = [each for each in successes if handlers.operation_of(each) == operation]
    # With an Idempotency-Key, a creation is a transaction.
    event = events[0 if "TransactWriteItems" in store else -1]
    (target,) = template["Resources"][f"{name}Heartbeat"]["Properties"]["Targets"]
    status, counts = answer_of(function, json.dumps(event), version, *store)
    _, beats = answer_of(function, target["Input"], version, *store)
    answer = mode.get("answer", {"status": status, "integration.status": str(status)})
    if answer.get("status") == 502:
        # monitoring-metrics-view.html in Lambda's guide
        of = {"FunctionName": function, "Resource": f"{function}:live"}
        counts = [
            (metric("AWS/Lambda", "Errors", of | {"ExecutedVersion": version}), 1)
        ]
    if answer:
        counts = counts + counted_by_gateway(template, operation, answer)
    return counts, [] if mode.get("silent") else beats


def day_of(template: Template, mode: Mode, rate: float, until: int = AFTER) -> Day:
    """Make the metrics of a day on which a failure begins at minute 0."""
    strangers = mode.get("extra", 0) * 60
    share = mode.get("share", 0 if strangers else 1)
    if "canary" in mode:
        share, rate = CANARY_SHARE, rate + CHECK_RATE
    day: Day = defaultdict(list)
    for operation in openapi.operations():
        met = mode.get("operations", [operation.id])
        good, beats = outcome(template, operation, {})
        failed, failed_beats = outcome(
            template, operation, mode if operation.id in met else {}
        )
        # An operation without a share is new: only what asks about it sends it requests.
        part = SHARES.get(
            operation.id, 0.01 * ("operations" in mode and operation.id in met)
        )
        for counts, per_minute, start, end in (
            (good, rate * part, BEFORE, 0),
            (good, rate * part * (1 - share), 0, until),
            (failed, (rate * share + strangers) * part, 0, until),
            (good, rate * part, until, AFTER),
            (beats, 0.2, BEFORE, 0),
            (beats if "canary" in mode else failed_beats, 0.2, 0, until),
            (beats, 0.2, until, AFTER),
        ):
            for counted, value in counts:
                day[counted].append(Stream(value, per_minute, start, end))
    return day


def told(template: Template, day: Day) -> str:
    """Say which alarms tell somebody, and after how many minutes."""
    functions = properties_by_name(template, "AWS::Serverless::Function").values()
    watched = [
        name for each in functions for name in each["DeploymentPreference"]["Alarms"]
    ]
    first: dict[str, int] = {}
    for name, minutes in ringing(template, day).items():
        alarm = template["Resources"][name]["Properties"]
        is_mailed = (
            alarm.get("AlarmActions") == alarm.get("OKActions") == ["AlarmTopic"]
        )
        if minutes and (is_mailed or name in watched):
            (kind,) = (kind for kind in KINDS if name.endswith(f"{kind}Alarm"))
            first[kind] = min(first.get(kind, AFTER), *minutes)
    said = [
        f"{kind} {first[kind]}" for kind in sorted(first, key=lambda kind: first[kind])
    ]
    return ", ".join(said) or "nobody"


@pytest.mark.parametrize("mode", MODES, ids=[mode["failure"] for mode in MODES])
def test_a_failure_is_told(mode: Mode) -> None:
    cells = [told(TEMPLATE, day_of(TEMPLATE, mode, rate)) for rate in RATES]

    assert cells == mode["told"]
    assert ("nobody" in cells) is ("because" in mode)


def test_the_runbook_shows_whom_failures_wake() -> None:
    rows = re.findall(
        r"^\| (.+) \| (.+) \| (.+) \| (.+) \| (.*) \|$", RUNBOOK, re.MULTILINE
    )
    computed = [(m["failure"], *m["told"], m.get("because", "")) for m in MODES]

    assert 10 <= len(set(rows) & set(computed)) <= 15
    assert "Objective" not in str(set(rows) - set(computed))


@openapi.each_operation
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ({"share": 0.008, "answer": {"status": 503}}, "Objective 275"),
        ({"share": 0, "silent": True}, "Heartbeat 15"),
        ({"canary": True, "answer": {"status": 502}}, "Deployment 1, Objective 9"),
        ({"canary": True, "store": ["", "", "lost"]}, "Deployment 1, Objective 9"),
    ],
    ids=["0.8 %", "silent", "crash", "store"],
)
def test_alarms_watch_each_operation(
    operation: openapi.Operation, mode: Mode, expected: str
) -> None:
    day = day_of(TEMPLATE, mode | {"operations": [operation.id]}, 30_000)

    assert told(TEMPLATE, day) == expected, (
        f"template.yaml: let ObjectiveAlarm and HeartbeatAlarm name the alarms of {operation.id}."
    )


@openapi.each_operation
def test_codedeploy_watches_its_own_operation(operation: openapi.Operation) -> None:
    name = block(operation.id)
    crash = {"canary": True, "answer": {"status": 502}, "operations": [operation.id]}

    minutes = ringing(STAGING, day_of(STAGING, crash, 60))

    assert [each for each in minutes if minutes[each]] == [f"{name}DeploymentAlarm"]
    function = STAGING["Resources"][f"{name}Function"]["Properties"]
    assert function["DeploymentPreference"]["Alarms"] == [f"{name}DeploymentAlarm"]


def test_strangers_do_not_hide_that_every_creation_fails() -> None:
    failing = {"operations": ["createPet"], "answer": {"status": 503}}
    refused = {"answer": {"status": 401, "integration.status": "401"}, "extra": 9}

    day = day_of(TEMPLATE, failing, 60)
    for counted, streams in day_of(TEMPLATE, refused, 0).items():
        day[counted] += streams

    assert told(TEMPLATE, day) == "Objective 5, Refusals 6"


def test_a_few_failures_within_the_objective_keep_no_page_open() -> None:
    failing = {"share": 0.0005, "answer": {"status": 503}}

    minutes = ringing(TEMPLATE, day_of(TEMPLATE, failing, 30_000))

    assert {name for name in minutes if minutes[name]} == {
        f"{block(operation.id)}ThreeFailuresAlarm" for operation in openapi.operations()
    }


@pytest.mark.parametrize(
    ("mode", "alarm", "minutes"),
    [
        ({"answer": {"status": 503}}, "ObjectiveAlarm", 15),
        ({"share": 0, "silent": True}, "HeartbeatAlarm", 5),
        ({"answer": {"status": 401, "integration.status": "401"}}, "RefusalsAlarm", 10),
        ({"canary": True, "answer": {"status": 502}}, "ListPetsDeploymentAlarm", 3),
    ],
)
def test_an_alarm_is_over_soon_after_the_failure(
    mode: Mode, alarm: str, minutes: int
) -> None:
    day = day_of(TEMPLATE, mode, 60, until=30)

    assert max(ringing(TEMPLATE, day)[alarm]) + 1 == 30 + minutes


def test_staging_has_what_costs_little() -> None:
    day = day_of(STAGING, {"store": ["", "ApiKeysTable", "fails"]}, 60)

    assert told(STAGING, day) == "Heartbeat 15"
    for kind in (
        "CloudWatch::CompositeAlarm",
        "CloudWatch::Dashboard",
        "WAFv2::WebACL",
    ):
        assert not properties_by_name(STAGING, f"AWS::{kind}")


@pytest.mark.parametrize(
    ("template", "each", "all_of_them"), [(TEMPLATE, 7, 2), (STAGING, 3, 0)]
)
def test_alarms_cost_little_and_stay_within_cloudwatchs_limits(
    template: Template, each: int, all_of_them: int
) -> None:
    alarms = properties_by_name(template, "AWS::CloudWatch::Alarm").values()
    metrics = [len(alarm.get("Metrics", "??")) - 1 for alarm in alarms]

    # $0.10 a month each.
    assert sum(metrics) == each * len(openapi.operations()) + all_of_them
    assert max(metrics) <= 10  # in an expression
    assert len(metrics) <= 100  # in a composite


def test_an_address_gets_what_the_alarms_say() -> None:
    template = production(AlarmEmail="a@b.c")

    subscription = properties_of(template, "AWS::SNS::Subscription")

    assert [subscription["TopicArn"], subscription["Endpoint"]] == [
        "AlarmTopic",
        "a@b.c",
    ]
    # Encrypted with the key of AWS, CloudWatch could not use it.
    assert properties_of(template, "AWS::SNS::Topic") == {}


def test_the_dashboard_shows_every_function_and_page() -> None:
    body = properties_of(TEMPLATE, "AWS::CloudWatch::Dashboard")["DashboardBody"]

    assert json.loads(body)
    for operation in openapi.operations():
        assert f'"{block(operation.id)}Function:live"' in body, (
            "template.yaml: Dashboard"
        )
    for name in ("ObjectiveAlarm", "HeartbeatAlarm", "RefusalsAlarm"):
        assert f'"{name}.Arn"' in body
