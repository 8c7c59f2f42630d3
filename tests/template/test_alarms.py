"""Whom the alarms tell about each failure of failure_modes.yaml, and after how many minutes."""

import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import closing, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import alarms, handlers, openapi
from tests.support.alarms import Alarms, Metric, Series, metric
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
    parameters,
    properties_by_name,
    properties_of,
)
from tools import ROOT
from tools.deployment.template import resolve

RUNBOOK = (ROOT / "docs/runbook.md").read_text()
MODES = yaml.safe_load(Path(__file__).with_name("failure_modes.yaml").read_text())
RATES = {"1 an hour": 1 / 60, "1 a second": 60, "500 a second": 30_000}  # a minute
SHARES = {"listPets": 0.39, "createPet": 0.01, "getPet": 0.6}
SHARE_ALONE = 0.01
FAULTS = {
    "throttled": THROTTLED,
    "fails": SERVER_ERROR,
    "lost": LOST_REQUEST,
    "denied": DENIED,
    "gone": error(400, "ResourceNotFoundException"),
}
CANARY_SHARE = 0.1
CHECK_RATE = 60  # a minute: less than the suite sends that runs during a deployment
BEFORE, AFTER = -6 * 60, 12 * 60  # minutes: the longest window, and what is waited for
MINUTES = [*range(1, 16), *range(20, 60, 5), *range(60, AFTER + 1, 20)]
GOOD = {"status": 200, "integration": "200"}
HEALTHY: dict[str, Any] = {}
Counts = list[tuple[Metric, float]]


class _Names(dict[str, str]):
    """What a template refers to: parameters, and resources by their own names."""

    def __missing__(self, name: str) -> str:
        return name


@pytest.fixture(scope="module")
def template() -> Template:
    """Return template.yaml with production's parameters."""
    names = _Names(parameters("production"), **{"AWS::StackName": "animal-store"})
    document = load("template.yaml")
    del document["Resources"]["Dashboard"]  # its text has other `${}`
    resolved: Template = resolve(document, names)
    return resolved


@pytest.fixture(scope="module", autouse=True)
def _clock() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        install_clock(patch)
        yield


def function_of(operation: str) -> str:
    return f"{operation[0].upper()}{operation[1:]}Function"


def run(event: Any, operation: str) -> tuple[int, Counts]:
    """Return the status of a function's answer, and the metrics of its line."""
    output = io.StringIO()
    with redirect_stdout(output), pytest.MonkeyPatch.context() as patch:
        version = f"{function_of(operation)}.Version.Version"
        patch.setenv("AWS_LAMBDA_FUNCTION_VERSION", version)
        status = handlers.invoke(event).status
    lines = map(json.loads, output.getvalue().splitlines())
    (line,) = (line for line in lines if "Operation" in line)
    return status, [(each, 1) for each in alarms.counted_by_function(line)]


def heartbeat_of(template: Template, operation: str) -> Any:
    """Return the event that the heartbeat's rule sends to a function."""
    (target,) = (
        target
        for target in properties_of(template, "AWS::Events::Rule")["Targets"]
        if target["Arn"] == f"{function_of(operation)}.Alias"
    )
    return json.loads(target["Input"])


def faulty_store(mode: dict[str, Any]) -> FaultyStore:
    """Return a store that fails calls to a table as a mode says; `*` is any."""
    if "store" not in mode:
        return FaultyStore()
    call, table, kind = mode["store"]
    fault: Fault = FAULTS[kind]
    name = "" if table == "*" else handlers.TEMPLATE.tables[table].name

    def answer(attempt: Attempt) -> Any:
        is_call = attempt.event_name.endswith(call.strip("*"))
        is_asked = is_call and name in str(attempt.request.body)
        return fault(attempt) if is_asked else attempt.carry_out()

    return FaultyStore(answer)


def counts_of_answer(
    template: Template, operation: openapi.Operation, answer: dict[str, Any]
) -> Counts:
    """Return what one request counts that gets an answer, besides the function's own metrics."""
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
    found = alarms.counted_in_log(template, log["DestinationArn"], json.loads(text))
    # api-gateway-metrics-and-dimensions.html in API Gateway's guide
    stage = {"ApiName": api["Name"], "Stage": api["StageName"]}
    found.append((metric("AWS/ApiGateway", "Count", **stage), 1))
    if answer.get("blocked"):
        # waf-metrics.html in WAF's guide
        acl = properties_of(template, "AWS::WAFv2::WebACL")["VisibilityConfig"]
        rule = {"WebACL": acl["MetricName"], "Region": "AWS::Region", "Rule": "ALL"}
        found.append((metric("AWS/WAFV2", "BlockedRequests", **rule), 1))
    return found


def crash_of(operation: str) -> Metric:
    """Name Lambda's count of crashes: monitoring-metrics-view.html in its guide."""
    name = function_of(operation)
    live = {"FunctionName": name, "Resource": f"{name}:live"}
    version = f"{name}.Version.Version"
    return metric("AWS/Lambda", "Errors", **live, ExecutedVersion=version)


def outcome(
    template: Template, mode: dict[str, Any], operation: openapi.Operation
) -> tuple[Counts, Counts]:
    """Return what a request that meets the failure counts, and what the heartbeat counts then."""
    name = operation.id
    own: Counts = []
    answer = (
        mode.get("answer", GOOD) if name in mode.get("operations", [name]) else GOOD
    )
    with closing(faulty_store(mode)):
        _, beats = run(heartbeat_of(template, name), name)
        if "store" in mode:
            events = [handlers.EVENTS[each] for each in handlers.SUCCESSES]
            own_events = [
                each for each in events if handlers.operation_of(each) == operation
            ]
            # The one with an Idempotency-Key is the last creation.
            event = own_events[-1 if mode["store"][0] == "TransactWriteItems" else 0]
            request = event["requestContext"] | {"stage": "production"}
            status, own = run(event | {"requestContext": request}, name)
            answer = {"status": status, "integration": str(status)}
    if answer["status"] == 502:
        own = [(crash_of(name), 1)]
    if not mode.get("canary"):  # DeploymentAlarm watches the new version alone
        own = [each for each in own if "Version" not in str(each)]
    failed = [] if mode.get("off") else counts_of_answer(template, operation, answer)
    return failed + own, [] if name in mode.get("silent", []) else beats


def record(
    template: Template, mode: dict[str, Any], rates: Iterable[str] = RATES
) -> dict[str, Series]:
    """Make the metrics of a day, by rate, on which a failure begins at minute 0."""
    days = {name: Series(BEFORE, AFTER) for name in rates}
    is_canary = mode.get("canary", False)
    share = (
        CANARY_SHARE if is_canary else mode.get("share", 0 if "extra" in mode else 1)
    )
    for operation in openapi.operations():
        part = SHARES.get(operation.id, 0)
        if "only" in mode:
            part = SHARE_ALONE if operation.id in mode["only"] else 0
        good, answered = outcome(template, HEALTHY, operation)
        failed, beats = outcome(template, mode, operation)
        for rate, day in days.items():
            requests = RATES[rate] + (CHECK_RATE if is_canary else 0)
            fill(day, requests * part, share, good=good, failed=failed)
            for minute in range(AFTER if "extra" in mode else 0):
                day.count(failed, minute, mode["extra"] * 60 * part)
            for minute in range(BEFORE, AFTER, 5):
                is_well = minute < 0 or is_canary
                day.count(answered if is_well else beats, minute, 1)
    return days


def fill(
    day: Series, requests: float, share: float, *, good: Counts, failed: Counts
) -> None:
    """Spread requests, of which a share fails from minute 0, evenly over a day."""
    sent = refused = 0
    for minute in range(BEFORE, AFTER):
        due = int(requests * (minute - BEFORE + 1) + 1e-9) - sent
        lost = 0
        if minute >= 0:
            lost = min(due, int(requests * share * (minute + 1) + 1e-9) - refused)
        day.count(good, minute, due - lost)
        day.count(failed, minute, lost)
        sent, refused = sent + due, refused + lost


def told(template: Template, day: Series, *, fills: bool) -> str:
    """Say which alarms that tell somebody ring, and after how many minutes."""
    pipeline = template["Globals"]["Function"]["DeploymentPreference"]["Alarms"]
    every = Alarms(template, fills=fills)
    first: dict[str, int] = {}
    for minute in MINUTES:
        for name in every.that_ring(day, minute):
            actions = template["Resources"][name]["Properties"].get("AlarmActions")
            if actions == ["AlarmTopic"] or name in pipeline:
                first.setdefault(name.removesuffix("Alarm"), minute)
    return ", ".join(f"{name} {minute}" for name, minute in first.items()) or "nobody"


@pytest.fixture(scope="module")
def table(template: Template) -> str:
    """Return the runbook's table, as it should be."""
    rows = [["Failure", *RATES, "Nobody, because"], ["---"] * (len(RATES) + 2)]
    for mode in MODES:
        days = record(template, mode).values()
        cells = [told(template, day, fills=False) for day in days]
        assert cells[0] == told(template, next(iter(days)), fills=True)
        because = mode.get("because", "")
        assert ("nobody" in cells) is bool(because), f"{mode['failure']}: {cells}"
        rows.append([mode["failure"], *cells, because])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def test_runbook_says_whom_each_failure_wakes(table: str) -> None:
    assert table in RUNBOOK, f"docs/runbook.md, Who is told: put this there.\n{table}"


@openapi.each_operation
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ({"answer": {"status": 503}}, "Objective 1"),
        ({"share": 0.02, "answer": {"status": 503}}, "Objective 45"),
        ({"share": 0.008, "answer": {"status": 503}}, "Objective 280"),
        ({"silent": []}, "Heartbeat 11"),
        ({"canary": True, "answer": {"status": 502}}, "Deployment 1, Objective 9"),
        ({"canary": True, "store": ["*", "*", "lost"]}, "Deployment 1, Objective 9"),
    ],
    ids=["all", "2 %", "0.8 %", "heartbeat", "crash", "store"],
)
def test_alarms_watch_each_operation(
    template: Template, operation: openapi.Operation, mode: Any, expected: str
) -> None:
    own = {"only": [operation.id], **mode}
    if "silent" in mode:
        own["silent"] = [operation.id]

    (day,) = record(template, own, ["500 a second"]).values()

    assert told(template, day, fills=False) == expected, (
        f"template.yaml: let each alarm, and the heartbeat, watch {operation.id}."
    )


def test_an_address_gets_what_the_alarms_say(template: Template) -> None:
    assert properties_of(template, "AWS::SNS::Subscription") == {
        "TopicArn": "AlarmTopic",
        "Protocol": "email",
        "Endpoint": "AlarmEmail",
    }


@pytest.mark.parametrize(
    ("failure", "alarm", "minutes"),
    [
        ("GetItem of a key fails", "ObjectiveAlarm", 15),
        ("the heartbeat's rule is switched off by hand", "HeartbeatAlarm", 1),
        ("a stranger sends 20 unknown keys a second", "RefusalsAlarm", 10),
        ("the new version crashes", "DeploymentAlarm", 3),
    ],
)
def test_an_alarm_is_over_soon_after_the_failure(
    template: Template, failure: str, alarm: str, minutes: int
) -> None:
    (mode,) = (mode for mode in MODES if mode["failure"] == failure)
    day = record(template, mode)["1 a second"].until(
        30, record(template, MODES[0])["1 a second"]
    )

    def rings(minute: int) -> bool:
        return alarm in Alarms(template).that_ring(day, minute)

    assert rings(30)
    over = next(minute for minute in range(30, AFTER) if not rings(minute))
    assert over == 30 + minutes


def test_the_dashboard_can_be_drawn_and_shows_every_alarm(stack: Template) -> None:
    body = properties_of(stack, "AWS::CloudWatch::Dashboard")["DashboardBody"]
    widgets = json.loads(body["Fn::Sub"])["widgets"]
    assert all(widget["x"] + widget["width"] <= 24 for widget in widgets)
    shown = {arn.strip("${}") for arn in widgets[0]["properties"]["alarms"]}
    assert shown == {
        f"{name}.Arn" for name in properties_by_name(stack, "AWS::CloudWatch::Alarm")
    }
