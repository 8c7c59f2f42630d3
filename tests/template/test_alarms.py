"""Whom the alarms tell about each failure of failure_modes.yaml, and after how many minutes."""

import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import handlers, openapi
from tests.support.alarms import (
    MINUTES,
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
    load,
    production,
    properties_by_name,
    properties_of,
)
from tools import ROOT

RUNBOOK = (ROOT / "docs/runbook.md").read_text()
MODES = yaml.safe_load(Path(__file__).with_name("failure_modes.yaml").read_text())
RATES = {"1 an hour": 1 / 60, "1 a second": 60, "500 a second": 30_000}  # a minute
SHARES = {"listPets": 0.39, "createPet": 0.01, "getPet": 0.6}
FAULTS = {
    "throttled": THROTTLED,
    "fails": SERVER_ERROR,
    "lost": LOST_REQUEST,
    "denied": DENIED,
    "gone": error(400, "ResourceNotFoundException"),
}
CANARY_SHARE = 0.1
CHECK_RATE = 60  # a minute: less than the suite sends that runs during a deployment
Counts = list[tuple[Metric, float]]


@pytest.fixture(scope="module")
def template() -> Template:
    return production()


@pytest.fixture(scope="module", autouse=True)
def _clock() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        install_clock(patch)
        yield


def function_of(operation: openapi.Operation) -> str:
    return f"{operation.id[0].upper()}{operation.id[1:]}Function"


@cache
def answer_of(event: str, version: str, *store: str) -> tuple[int, Counts]:
    """Return the status of a function's answer, and what its line counts.

    DynamoDB fails one call (`*`: any) to one table (`*`: any) in one way.
    """
    call, table, kind = store or ("none", "*", "fails")
    fault: Fault = FAULTS[kind]
    name = "" if table == "*" else handlers.TEMPLATE.tables[table].name

    def answer(attempt: Attempt) -> Any:
        is_call = attempt.event_name.endswith(call.strip("*"))
        is_asked = is_call and name in str(attempt.request.body)
        return fault(attempt) if is_asked else attempt.carry_out()

    output = io.StringIO()
    with (
        closing(FaultyStore(answer)),
        redirect_stdout(output),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("AWS_LAMBDA_FUNCTION_VERSION", version)
        status = handlers.invoke(json.loads(event)).status
    lines = map(json.loads, output.getvalue().splitlines())
    (line,) = (line for line in lines if "Operation" in line)
    return status, list(counted_by_function(line))


def counted_before_functions(
    template: Template, operation: openapi.Operation, answer: dict[str, Any]
) -> Counts:
    """Return what a request counts that gets an answer, besides what its function counts."""
    api = properties_of(template, "AWS::Serverless::Api")
    context = {
        "status": answer["status"],
        "responseLatency": answer.get("latency", 20),
        "httpMethod": operation.method,
        "resourcePath": f"/v1{operation.path}",
        "stage": api["StageName"],
        "integration.status": answer.get("integration", "-"),
        "error.responseType": answer.get("gatewayError", "-"),
    }
    log = api["AccessLogSetting"]
    text = re.sub(
        r"\$context\.([\w.]+)",
        lambda found: str(context.get(found[1], "-")),
        log["Format"],
    )
    counts = list(counted_in_log(template, log["DestinationArn"], json.loads(text)))
    if answer.get("unlogged"):
        counts = []
    # api-gateway-metrics-and-dimensions.html in API Gateway's guide
    stage = {"ApiName": api["Name"], "Stage": api["StageName"]}
    counts.append((metric("AWS/ApiGateway", "Count", stage), 1))
    if answer.get("blocked"):
        # waf-metrics.html in WAF's guide
        acl = properties_of(template, "AWS::WAFv2::WebACL")["VisibilityConfig"]
        rule = {"WebACL": acl["MetricName"], "Region": "AWS::Region", "Rule": "ALL"}
        counts.append((metric("AWS/WAFV2", "BlockedRequests", rule), 1))
    return counts


def outcome(
    template: Template, mode: dict[str, Any], operation: openapi.Operation
) -> tuple[Counts, Counts]:
    """Return what a request that meets the failure counts, and what the heartbeat counts then."""
    name = function_of(operation)
    version = f"{name}.Version.Version" if "canary" in mode else "the old one"
    store = mode.get("store", [])
    names = [
        each
        for each in handlers.SUCCESSES
        if handlers.operation_of(handlers.EVENTS[each]) == operation
    ]
    # The longest name is that of a creation with an Idempotency-Key.
    longest_or_shortest = max if "TransactWriteItems" in store else min
    event = handlers.EVENTS[longest_or_shortest(names, key=len)]
    targets = properties_of(template, "AWS::Events::Rule")["Targets"]
    (beat,) = (each for each in targets if each["Arn"] == f"{name}.Alias")
    request = event["requestContext"] | {"stage": "production"}
    sent = json.dumps(event | {"requestContext": request})
    status, counts = answer_of(sent, version, *store)
    _, beats = answer_of(beat["Input"], version, *store)
    answer = mode.get("answer", {"status": status, "integration": str(status)})
    if answer and answer["status"] == 502:
        # monitoring-metrics-view.html in Lambda's guide
        of = {"FunctionName": name, "Resource": f"{name}:live"}
        of["ExecutedVersion"] = version
        counts = [(metric("AWS/Lambda", "Errors", of), 1)]
    if answer:
        counts = counts + counted_before_functions(template, operation, answer)
    return counts, [] if mode.get("silent") else beats


def record(
    template: Template,
    mode: dict[str, Any],
    rates: Iterable[float] = RATES.values(),
    until: int = MINUTES[-1],
) -> list[Day]:
    """Make the metrics of days, one for each rate, on which a failure begins at minute 0."""
    rule = properties_of(template, "AWS::Events::Rule")
    minutes = rule["ScheduleExpression"].removeprefix("rate(").removesuffix(" minutes)")
    beat_rate = 1 / int(minutes) if rule["State"] == "ENABLED" else 0
    others = mode.get("extra", 0) * 60
    share = mode.get("share", 0 if others else 1)
    rates = list(rates)
    if "canary" in mode:
        share, rates = CANARY_SHARE, [rate + CHECK_RATE for rate in rates]
    days: list[Day] = [defaultdict(list) for _ in rates]
    for operation in openapi.operations():
        name = operation.id
        good, answered = outcome(template, {}, operation)
        own_mode = mode if name in mode.get("operations", [name]) else {}
        failed, beats = outcome(template, own_mode, operation)
        if "canary" in mode:
            beats = answered
        # An operation without a share is new: only what asks about it sends it requests.
        new = 0.01 if name in mode.get("operations", []) else 0
        for day, rate in zip(days, rates, strict=True):
            part = SHARES.get(name, new)
            all_requests = rate * part
            failures = all_requests * share
            well = [(good, all_requests), (answered, beat_rate)]
            ill = [
                (good, all_requests - failures),
                (failed, failures + others * part),
                (beats, beat_rate),
            ]
            for first, last, phase in (
                (MINUTES[0], 0, well),
                (0, until, ill),
                (until, MINUTES[-1], well),
            ):
                for counts, per_minute in phase:
                    for counted, value in counts if per_minute else []:
                        day[counted].append(Stream(value, per_minute, first, last))
    return days


def told(template: Template, day: Day) -> str:
    """Say which alarms that tell somebody ring, and after how many minutes."""
    pipeline = template["Globals"]["Function"]["DeploymentPreference"]["Alarms"]
    found = []
    for name, minutes in ringing(template, day).items():
        alarm = template["Resources"][name]["Properties"]
        is_mailed = alarm.get("AlarmActions") == ["AlarmTopic"]
        tells = name in pipeline or (is_mailed and alarm.get("ActionsEnabled", True))
        if minutes and tells:
            found.append((min(minutes), name.removesuffix("Alarm")))
    return ", ".join(f"{name} {minute}" for minute, name in sorted(found)) or "nobody"


def test_runbook_says_whom_each_failure_wakes(template: Template) -> None:
    rows = [["Failure", *RATES, "Nobody, because"], ["---"] * (len(RATES) + 2)]
    for mode in MODES:
        cells = [told(template, day) for day in record(template, mode)]
        because = mode.get("because", "")
        assert ("nobody" in cells) is bool(because), f"{mode['failure']}: {cells}"
        rows.append([mode["failure"], *cells, because])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    assert table in RUNBOOK, f"docs/runbook.md, Who is told: put this there.\n{table}"


@openapi.each_operation
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ({"share": 0.008, "answer": {"status": 503}}, "Objective 109"),
        ({"canary": True, "answer": {"status": 502}}, "Deployment 1, Objective 9"),
        ({"canary": True, "store": ["*", "*", "lost"]}, "Deployment 1, Objective 9"),
    ],
    ids=["0.8 %", "crash", "store"],
)
def test_alarms_watch_each_operation(
    template: Template, operation: openapi.Operation, mode: Any, expected: str
) -> None:
    (day,) = record(template, mode | {"operations": [operation.id]}, [30_000])

    assert told(template, day) == expected, (
        f"template.yaml: let each alarm, and the heartbeat, watch {operation.id}."
    )


def test_an_address_gets_what_the_alarms_say() -> None:
    template = production(AlarmEmail="a@b.c")
    assert properties_of(template, "AWS::SNS::Subscription") == {
        "TopicArn": "AlarmTopic",
        "Protocol": "email",
        "Endpoint": "a@b.c",
    }


def test_the_heartbeats_rule_may_call_each_function_that_it_calls(
    template: Template,
) -> None:
    permissions = properties_by_name(template, "AWS::Lambda::Permission").values()
    targets = properties_of(template, "AWS::Events::Rule")["Targets"]
    assert list(permissions) == [
        {
            "Action": "lambda:InvokeFunction",
            "FunctionName": target["Arn"],
            "Principal": "events.amazonaws.com",
            "SourceArn": "HeartbeatRule.Arn",
        }
        for target in targets
    ]


def test_without_a_heartbeat_nobody_is_told_that_it_is_missing() -> None:
    template = production(Heartbeat="false")

    (day,) = record(template, {"share": 0}, [60])

    assert properties_of(template, "AWS::Events::Rule")["State"] == "DISABLED"
    assert told(template, day) == "nobody"


def test_a_few_failures_within_the_objective_keep_no_page_open(
    template: Template,
) -> None:
    failing = {"share": 0.0005, "answer": {"status": 503}}

    (day,) = record(template, failing, [30_000])

    assert not any(60 in minutes for minutes in ringing(template, day).values())


@pytest.mark.parametrize(
    ("failure", "alarm", "minutes"),
    [
        ("GetItem of a key fails", "ObjectiveAlarm", 15),
        ("the heartbeat's rule is switched off by hand", "HeartbeatAlarm", 5),
        ("a stranger sends 20 unknown keys a second", "RefusalsAlarm", 10),
        ("the new version crashes", "DeploymentAlarm", 3),
    ],
)
def test_an_alarm_is_over_soon_after_the_failure(
    template: Template, failure: str, alarm: str, minutes: int
) -> None:
    (mode,) = (mode for mode in MODES if mode["failure"] == failure)

    (day,) = record(template, mode, [60], until=30)

    assert max(ringing(template, day)[alarm]) + 1 == 30 + minutes


def test_the_dashboard_can_be_drawn_and_shows_every_alarm() -> None:
    stack = load("template.yaml")
    body = properties_of(stack, "AWS::CloudWatch::Dashboard")["DashboardBody"]
    widgets = json.loads(body["Fn::Sub"])["widgets"]
    assert all(widget["x"] + widget["width"] <= 24 for widget in widgets)
    shown = {arn.strip("${}") for arn in widgets[0]["properties"]["alarms"]}
    assert shown == {
        f"{name}.Arn" for name in properties_by_name(stack, "AWS::CloudWatch::Alarm")
    }
