"""What a stage of production costs a month, by rate: list prices times what it uses."""

import re
from collections import Counter
from typing import Any

import yaml

from benchmarks.packages import HERE
from benchmarks.store import animal, size
from tests.support.handlers import EVENTS, TEMPLATE
from tests.support.stack import (
    Template,
    parameters,
    properties_by_name,
    properties_of,
)
from tools.packaging.translate import translate

PRICES = yaml.safe_load((HERE / "prices.yaml").read_text())
RATES = (0, 0.1, 1, 50, 500)  # requests a second
SHARES = {"get": 0.6, "list of 20": 0.3, "create": 0.1}
# Of such a request, on average (docs/scale.md): requests to DynamoDB, and units. A creation writes
# the counter, the animal and its place in the index.
_STORE_REQUESTS, _READ_UNITS, _WRITE_UNITS = 1.1, 0.9, 0.3
_MONTH = 30 * 86_400  # seconds
_BEAT = 300  # seconds
# Assumed: how long a call from Lambda to DynamoDB takes, for which Lambda is paid too; a response's
# headers; the mean of the values in a line of the access log.
_STORE_MS, _HEADER_BYTES, _VALUE_BYTES = 4, 600, 10
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
_BYTES_ADDED_TO_AN_ITEM = 100


def bills(ours: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return production's dollars by rate and line, with a million animals and our results."""
    stack = translate(parameters("production"))
    made: dict[str, dict[str, float]] = {}
    for rate in RATES:
        used = quantities(stack, ours, rate)
        lines: Counter[str] = Counter()
        for price in PRICES["prices"]:
            lines[price["line"]] += used[price["quantity"]] * price["usd"]
        made[f"{rate:g}/s"] = {line: round(usd, 2) for line, usd in lines.items()}
    return made


def quantities(stack: Template, ours: dict[str, Any], rate: float) -> dict[str, float]:
    """Return what a month uses, in the units of prices.yaml."""
    ms, log_bytes, body_bytes = (
        sum(share * ours[figure][case] for case, share in SHARES.items())
        for figure in ("cpu_ms", "log_bytes", "body_bytes")
    )
    access_log = properties_of(stack, "AWS::ApiGateway::Stage")["AccessLogSetting"]
    line = re.sub(r"\$context\.[\w.]+", "x" * _VALUE_BYTES, access_log["Format"])
    kinds = Counter(resource["Type"] for resource in stack["Resources"].values())
    millions = rate * _MONTH / 1e6
    beats = kinds["AWS::Events::Rule"] * len(TEMPLATE.functions) * _MONTH / _BEAT
    calls = millions + beats / 1e6
    gb = TEMPLATE.functions["ListPetsFunction"].memory_mb / 1024
    stored = (size(animal(1)) + _BYTES_ADDED_TO_AN_ITEM) / 1000
    alarms = properties_by_name(stack, "AWS::CloudWatch::Alarm").values()
    watched = [
        metric for alarm in alarms for metric in alarm.get("Metrics", [{"MetricStat"}])
    ]
    return {
        "requests": min(millions, 333),
        "requests above 333 million": max(min(millions, 1000) - 333, 0),
        "requests above 1 billion": max(millions - 1000, 0),
        "calls": calls,
        "durations": calls * 1e3 * gb * (ms + _STORE_REQUESTS * _STORE_MS),
        "read units": calls * _READ_UNITS,
        "write units": millions * _WRITE_UNITS,
        "data and indexes": stored * 2,
        "data that can be restored to a point in time": stored,
        "logs": (calls * log_bytes + millions * len(line)) / 1e3,
        "custom metrics": custom_metrics(stack, is_idle=rate == 0),
        "metrics of alarms": sum("MetricStat" in metric for metric in watched),
        "composite alarms": kinds["AWS::CloudWatch::CompositeAlarm"],
        "dashboards": kinds["AWS::CloudWatch::Dashboard"],
        "web ACLs": kinds["AWS::WAFv2::WebACL"],
        "rules": len(properties_of(stack, "AWS::WAFv2::WebACL")["Rules"]),
        "requests inspected": millions,
        "responses": millions * (body_bytes + _HEADER_BYTES) / 1e3,
    }


def custom_metrics(stack: Template, *, is_idle: bool) -> int:
    """Count the combinations of dimensions that telemetry.py and the metric filters write.

    Those of errors that `events/` has examples of, and one key that calls the deprecated operation.
    In an idle stage only the heartbeat writes some, for each function cold starts and refusals.
    """
    functions = len(TEMPLATE.functions)
    if is_idle:
        return 2 * functions
    errors = {tuple(name.split("-")[:2]) for name in EVENTS if "-4" in name}
    filters = {
        written["MetricName"]: functions if "Resource" in str(written) else 1
        for each in properties_by_name(stack, "AWS::Logs::MetricFilter").values()
        for written in each["MetricTransformations"]
    }
    return 3 * functions + len(errors) + 1 + sum(filters.values())
