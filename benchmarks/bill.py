"""What a stage costs a month by rate: `python -m benchmarks.bill` prints it as a table."""

import json
import re
from collections import Counter
from typing import Any

import yaml

from benchmarks.fake_dynamodb import animal, size
from benchmarks.packages import HERE, OURS, TEMPLATE
from benchmarks.report import table
from tests.support.stack import Template, parameters, properties_by_name
from tools import ROOT
from tools.packaging.translate import translate

PRICES = yaml.safe_load((HERE / "prices.yaml").read_text())
RATES = (0, 0.1, 1, 50, 500)
"""Requests a second."""
SHARES = {"get": 0.6, "list_20": 0.3, "create": 0.1}
_MONTH = 30 * 86_400  # seconds
_BEAT = 300  # seconds
# Assumed: how long a call from Lambda to DynamoDB takes, for which Lambda is paid too; a response's
# headers; the mean of the values in a line of the access log.
_STORE_MS, _HEADER_BYTES, _VALUE_BYTES = 4, 600, 10
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
_BYTES_ADDED_TO_AN_ITEM = 100


def quantities(stack: Template, ours: dict[str, Any], rate: float) -> dict[str, float]:
    """Return what a month uses, in the units of prices.yaml; the store has a million animals.

    Args:
        stack: The translated template.
        ours: The row of results.json.
        rate: Requests a second.
    """

    def mean(figure: str) -> float:
        return sum(share * ours[figure][name] for name, share in SHARES.items())

    def of(kind: str) -> list[Any]:
        return list(properties_by_name(stack, kind).values())

    millions = rate * _MONTH / 1e6
    beats = sum(len(rule["Targets"]) for rule in of("AWS::Events::Rule"))
    calls = millions + beats * _MONTH / _BEAT / 1e6
    ms = mean("cpu_ms") + mean("requests") * _STORE_MS
    gigabytes = TEMPLATE.functions["ListPetsFunction"].memory_mb / 1024
    (stage,) = of("AWS::ApiGateway::Stage")
    values = r"\$context\.[\w.]+"
    access = re.sub(values, "x" * _VALUE_BYTES, stage["AccessLogSetting"]["Format"])
    data = (size(animal(1)) + _BYTES_ADDED_TO_AN_ITEM) / 1000
    alarms = [
        metric for alarm in of("AWS::CloudWatch::Alarm") for metric in alarm["Metrics"]
    ]
    return {
        "requests": min(millions, 333),
        "requests above 333 million": max(min(millions, 1000) - 333, 0),
        "requests above 1 billion": max(millions - 1000, 0),
        "calls": calls,
        "durations": calls * 1e3 * ms * gigabytes,
        "read units": calls * mean("read_units"),
        # The counter, the animal and its place in the index.
        "write units": millions * SHARES["create"] * 3,
        "data and indexes": data * 2,
        "data that can be restored to a point in time": data,
        "logs": (calls * mean("log_bytes") + millions * len(access)) / 1e3,
        "custom metrics": custom_metrics(stack, is_idle=rate == 0),
        "metrics of alarms": sum("MetricStat" in metric for metric in alarms),
        "composite alarms": len(of("AWS::CloudWatch::CompositeAlarm")),
        "dashboards": len(of("AWS::CloudWatch::Dashboard")),
        "web ACLs": len(of("AWS::WAFv2::WebACL")),
        "rules": sum(len(acl["Rules"]) for acl in of("AWS::WAFv2::WebACL")),
        "requests inspected": millions,
        "responses": millions * (mean("body_bytes") + _HEADER_BYTES) / 1e3,
    }


def custom_metrics(stack: Template, *, is_idle: bool) -> int:
    """Count the combinations of dimensions that telemetry.py and the metric filters write.

    Those of errors that `events/` has examples of, and one key that calls the deprecated operation.
    In an idle stage only the heartbeat writes some, for each function cold starts and refusals.
    """
    functions = len(TEMPLATE.functions)
    if is_idle:
        return 2 * functions
    examples = (ROOT / "events").glob("*-4*.json")
    errors = {tuple(example.stem.split("-")[:2]) for example in examples}
    filters = {
        written["MetricName"]: functions if "Resource" in str(written) else 1
        for each in properties_by_name(stack, "AWS::Logs::MetricFilter").values()
        for written in each["MetricTransformations"]
    }
    return 3 * functions + len(errors) + 1 + sum(filters.values())


def bill(used: dict[str, float]) -> Counter[str]:
    """Return the dollars of each line."""
    lines: Counter[str] = Counter()
    for price in PRICES["prices"]:
        lines[price["line"]] += used[price["quantity"]] * price["usd"]
    return lines


def published() -> str:
    """Write the bill of production at each rate, from the published figures."""
    rows = json.loads((HERE / "results.json").read_text())["rows"]
    ours = {row["variant"]: row for row in rows}[OURS]
    stack = translate(parameters("production"))
    bills = [bill(quantities(stack, ours, rate)) for rate in RATES]
    lines = {name: [each[name] for each in bills] for name in bills[0]}
    totals = [each.total() for each in bills]
    lines["**one stage**"] = totals
    lines["**and an idle second one**"] = [total + totals[0] for total in totals]
    head = ["dollars a month", "idle", *(f"{rate:g}/s" for rate in RATES[1:])]
    cells = [[name, *(f"{usd:,.2f}" for usd in row)] for name, row in lines.items()]
    return table(head, cells)


if __name__ == "__main__":
    print(published(), end="")
