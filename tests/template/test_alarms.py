"""Whom the alarms tell about each failure of failure_modes.yaml, and after how many minutes."""

import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator
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
FAULTS: dict[str, Fault] = {
    "throttled": THROTTLED,
    "fails": SERVER_ERROR,
    "lost": LOST_REQUEST,
    "denied": DENIED,
    "gone": error(400, "ResourceNotFoundException"),
    "works": Attempt.carry_out,
}
CANARY_SHARE = 0.1
CHECK_RATE = 60  # a minute: less than the suite sends that runs during a deployment
Counts = list[tuple[Metric, float]]
TEMPLATE = production(Stage="staging")  # production's, with the stage in `events/`


@pytest.fixture(scope="module", autouse=True)
def _clock() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        install_clock(patch)
        yield


@cache
def answer_of(event: str, version: str, *store: str) -> tuple[int, Counts]:
    """Return the status of a function's answer, and what its line counts.

    DynamoDB fails one call (or any) to one table (or any) in one way.
    """
    call, table, kind = store or ("", "", "works")

    def answer(attempt: Attempt) -> Any:
        asked = f"{attempt.event_name} {attempt.request.body!r}"
        is_met = call in asked and table in asked
        return FAULTS[kind if is_met else "works"](attempt)

    with (
        closing(FaultyStore(answer)),
        redirect_stdout(io.StringIO()) as output,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("AWS_LAMBDA_FUNCTION_VERSION", version)
        status = handlers.invoke(json.loads(event)).status
    # An exception's line comes before it.
    line = json.loads(output.getvalue().splitlines()[-1])
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
    counts: Counts = []
    if not answer.get("unlogged"):
        counts += counted_in_log(template, log["DestinationArn"], json.loads(text))
    # api-gateway-metrics-and-dimensions.html in API Gateway's guide
    stage = {"ApiName": api["Name"], "Stage": api["StageName"]}
    counts.append((metric("AWS/ApiGateway", "Count", stage), 1))
    acl = properties_of(template, "AWS::WAFv2::WebACL")["VisibilityConfig"]
    if answer.get("blocked") and acl["CloudWatchMetricsEnabled"]:
        # waf-metrics.html in WAF's guide
        rule = {"WebACL": acl["MetricName"], "Region": "AWS::Region", "Rule": "ALL"}
        counts.append((metric("AWS/WAFV2", "BlockedRequests", rule), 1))
    return counts


def outcome(
    template: Template, mode: dict[str, Any], operation: openapi.Operation
) -> tuple[Counts, Counts]:
    """Return what a request that meets the failure counts, and what the heartbeat counts then."""
    name = f"{operation.id[0].upper()}{operation.id[1:]}Function"
    version = f"{name}.Version.Version" if "canary" in mode else "the old one"
    store = mode.get("store", [])
    successes = [handlers.EVENTS[each] for each in handlers.SUCCESSES]
    events = [each for each in successes if handlers.operation_of(each) == operation]
    # With an Idempotency-Key, a creation is a transaction.
    event = events[0 if "TransactWriteItems" in store else -1]
    targets = properties_of(template, "AWS::Events::Rule")["Targets"]
    (beat,) = (each["Input"] for each in targets if each["Arn"] == f"{name}.Alias")
    status, counts = answer_of(json.dumps(event), version, *store)
    _, beats = answer_of(beat, version, *store)
    answer = mode.get("answer", {"status": status, "integration": str(status)})
    if answer.get("status") == 502:
        # monitoring-metrics-view.html in Lambda's guide
        alias = template["Globals"]["Function"]["AutoPublishAlias"]
        of = {"FunctionName": name, "Resource": f"{name}:{alias}"}
        of["ExecutedVersion"] = version
        counts = [(metric("AWS/Lambda", "Errors", of), 1)]
    if answer:
        counts = counts + counted_before_functions(template, operation, answer)
    return counts, [] if mode.get("silent") else beats


def record(
    template: Template, mode: dict[str, Any], rate: float, until: int = MINUTES[-1]
) -> Day:
    """Make the metrics of a day on which a failure begins at minute 0."""
    rule = properties_of(template, "AWS::Events::Rule")
    minutes = rule["ScheduleExpression"].removeprefix("rate(").removesuffix(" minutes)")
    beat_rate = (rule["State"] == "ENABLED") / int(minutes)
    others = mode.get("extra", 0) * 60
    share = mode.get("share", 0 if others else 1)
    if "canary" in mode:
        share, rate = CANARY_SHARE, rate + CHECK_RATE
    day: Day = defaultdict(list)
    for operation in openapi.operations():
        good, answered = outcome(template, {}, operation)
        is_named = operation.id in mode.get("operations", [])
        is_met = is_named or "operations" not in mode
        failed, beats = outcome(template, mode if is_met else {}, operation)
        # An operation without a share is new: only what asks about it sends it requests.
        part = SHARES.get(operation.id, 0.01 * is_named)
        requests = rate * part
        first, last = MINUTES[0], MINUTES[-1]
        for counts, per_minute, start, end in (
            (good, requests, first, 0),
            (good, requests * (1 - share), 0, until),
            (failed, requests * share + others * part, 0, until),
            (good, requests, until, last),
            (answered, beat_rate, first, 0),
            (answered if "canary" in mode else beats, beat_rate, 0, until),
            (answered, beat_rate, until, last),
        ):
            for counted, value in counts:
                day[counted].append(Stream(value, per_minute, start, end))
    return day


def told(template: Template, day: Day) -> str:
    """Say which alarms that tell somebody ring, and after how many minutes."""
    pipeline = template["Globals"]["Function"]["DeploymentPreference"]["Alarms"]
    found = []
    for name, minutes in ringing(template, day).items():
        alarm = template["Resources"][name]["Properties"]
        mails = [alarm.get("AlarmActions"), alarm.get("OKActions")]
        is_mailed = mails == [["AlarmTopic"]] * 2 and alarm.get("ActionsEnabled", True)
        if minutes and (name in pipeline or is_mailed):
            found.append((min(minutes), name.removesuffix("Alarm")))
    return ", ".join(f"{name} {minute}" for minute, name in sorted(found)) or "nobody"


def test_runbook_says_whom_each_failure_wakes() -> None:
    rows = [["Failure", *RATES, "Nobody, because"], ["---"] * (len(RATES) + 2)]
    for mode in MODES:
        days = [record(TEMPLATE, mode, rate) for rate in RATES.values()]
        cells = [told(TEMPLATE, day) for day in days]
        because = mode.get("because", "")
        assert ("nobody" in cells) is bool(because), f"{mode['failure']}: {cells}"
        rows.append([mode["failure"], *cells, because])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    assert table in RUNBOOK, f"docs/runbook.md, Who is told: put this there.\n{table}"


@openapi.each_operation
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ({"share": 0.008, "answer": {"status": 503}}, "Objective 271"),
        ({"canary": True, "answer": {"status": 502}}, "Deployment 1, Objective 9"),
        ({"canary": True, "store": ["", "", "lost"]}, "Deployment 1, Objective 9"),
    ],
    ids=["0.8 %", "crash", "store"],
)
def test_alarms_watch_each_operation(
    operation: openapi.Operation, mode: Any, expected: str
) -> None:
    day = record(TEMPLATE, mode | {"operations": [operation.id]}, 30_000)

    assert told(TEMPLATE, day) == expected, (
        f"template.yaml: let each alarm, and the heartbeat, watch {operation.id}."
    )


def test_an_address_gets_what_the_alarms_say() -> None:
    template = production(AlarmEmail="a@b.c")
    # Encrypted with the key of AWS, CloudWatch could not use it.
    assert properties_of(template, "AWS::SNS::Topic") == {}
    assert properties_of(template, "AWS::SNS::Subscription") == {
        "TopicArn": "AlarmTopic",
        "Protocol": "email",
        "Endpoint": "a@b.c",
    }


def test_the_heartbeats_rule_may_call_each_function_that_it_calls() -> None:
    permissions = properties_by_name(TEMPLATE, "AWS::Lambda::Permission").values()
    targets = properties_of(TEMPLATE, "AWS::Events::Rule")["Targets"]
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

    day = record(template, {"share": 0}, 60)

    assert properties_of(template, "AWS::Events::Rule")["State"] == "DISABLED"
    assert told(template, day) == "nobody"


def test_a_few_failures_within_the_objective_keep_no_page_open() -> None:
    failing = {"share": 0.0005, "answer": {"status": 503}}

    day = record(TEMPLATE, failing, 30_000)

    assert not any(ringing(TEMPLATE, day).values())


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
    failure: str, alarm: str, minutes: int
) -> None:
    (mode,) = (mode for mode in MODES if mode["failure"] == failure)

    day = record(TEMPLATE, mode, 60, until=30)

    assert max(ringing(TEMPLATE, day)[alarm]) + 1 == 30 + minutes


def test_the_dashboard_can_be_drawn_and_shows_every_alarm() -> None:
    stack = load("template.yaml")
    body = properties_of(stack, "AWS::CloudWatch::Dashboard")["DashboardBody"]
    widgets = json.loads(body["Fn::Sub"])["widgets"]
    assert all(widget["x"] + widget["width"] <= 24 for widget in widgets)
    shown = {arn.strip("${}") for arn in widgets[0]["properties"]["alarms"]}
    assert shown == {
        f"{name}.Arn" for name in properties_by_name(stack, "AWS::CloudWatch::Alarm")
    }
