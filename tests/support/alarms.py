"""Evaluate the alarms of a template over traffic, as CloudWatch does.

Windows slide with the minutes.
"""

import re
from collections.abc import Mapping
from functools import cache
from math import floor, isnan, nan
from operator import gt, lt
from typing import Any, NamedTuple

from tests.support.stack import Template, properties_by_name

Counts = list[tuple[Any, float]]
"""What adds to metrics (by namespace, name and dimensions), and which value."""

MINUTES = [*range(1, 11), *range(15, 8 * 60 + 1, 15)]
"""Those of 8 hours that are looked at."""

_COMPARE = {"GreaterThanThreshold": gt, "LessThanThreshold": lt}
# What Python calls otherwise of metric math, of a composite alarm's rule and of a filter's pattern
# (using-metric-math.html, AlarmRule, FilterAndPatternSyntax.html).
_FUNCTIONS: dict[str, Any] = {
    "IF": lambda condition, yes, no: yes if condition else no,
    "FILL": lambda value, filling: filling if isnan(value) else value,
    "SUM": sum,
}
_PYTHON = {
    r"[{}]|\$\.": "",
    r'= "([^"]*)\*"': r'.startswith("\1")',
    " = ": " == ",
    r"\bAND\b|&&": "&",
    r"\bOR\b|\|\|": "|",
}


@cache
def _compiled(expression: str) -> Any:
    for theirs, ours in _PYTHON.items():
        expression = re.sub(theirs, ours, expression)
    return compile(expression.strip(), "template.yaml", "eval")


def _evaluate(expression: str, names: Mapping[str, Any]) -> Any:
    return eval(_compiled(expression), _FUNCTIONS, names)  # noqa: S307 - the template's


class Stream(NamedTuple):
    """Requests, or invocations, that come evenly: so many a minute before and after minute 0."""

    counts: Counts
    before: float
    after: float

    def until(self, minute: int) -> int:
        """Return how many come from minute 0 until another."""
        return floor(minute * (self.after if minute > 0 else self.before) + 1e-9)


Day = list[Stream]


def _statistic(day: Day, asked: dict[str, Any], minute: int) -> float:
    """Return a statistic of a metric over its period until a minute, NaN without values."""
    dimensions = {pair["Name"]: pair["Value"] for pair in asked["Dimensions"]}
    number, total = 0, 0.0
    for stream in day:
        for metric, value in stream.counts:
            if metric == (asked["Namespace"], asked["MetricName"], dimensions):
                start = minute - asked["Period"] // 60
                came = stream.until(minute) - stream.until(start)
                number += came
                total += came * value
    if number == 0:
        return nan
    return total / {"Sum": 1, "Average": number}[asked["Statistic"]]


def _value(day: Day, alarm: dict[str, Any], minute: int) -> float:
    """Return what an alarm compares with its threshold."""
    if "Metrics" not in alarm:
        return _statistic(day, alarm, minute)
    result, *queries = alarm["Metrics"]
    values = {}
    for query in queries:
        asked = query["MetricStat"] | query["MetricStat"]["Metric"]
        values[query["Id"]] = _statistic(
            day, asked | {"Statistic": asked["Stat"]}, minute
        )
    return float(_evaluate(result["Expression"], values))


def _rings(day: Day, alarm: dict[str, Any], now: int) -> bool:
    period = alarm.get("Period") or alarm["Metrics"][1]["MetricStat"]["Period"]
    compare, threshold = _COMPARE[alarm["ComparisonOperator"]], alarm["Threshold"]
    breaching = 0
    for back in range(alarm["EvaluationPeriods"]):
        value = _value(day, alarm, now - back * period // 60)
        missing = isnan(value) and alarm["TreatMissingData"] == "breaching"
        breaching += missing or compare(value, float(threshold))
    return not breaching < alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"])


def ringing(template: Template, day: Day) -> dict[str, set[int]]:
    """Return for each alarm the minutes at which it is in ALARM and not suppressed."""
    found = {}
    for name, alarm in properties_by_name(template, "AWS::CloudWatch::Alarm").items():
        found[name] = {now for now in MINUTES if _rings(day, alarm, now)}
    composites = properties_by_name(template, "AWS::CloudWatch::CompositeAlarm")
    for name, alarm in composites.items():
        suppressor = alarm.get("ActionsSuppressor", "").removesuffix(".Arn")
        minutes = _evaluate(alarm["AlarmRule"], {"ALARM": found.get})
        found[name] = minutes - found.get(suppressor, set())
    return found


def counted_in_log(template: Template, line: dict[str, Any]) -> Counts:
    """Return what the metric filters make of a line of the access log."""
    counts = []
    for each in properties_by_name(template, "AWS::Logs::MetricFilter").values():
        if _evaluate(each["FilterPattern"], line):
            (made,) = each["MetricTransformations"]
            dimensions = {}
            for pair in made["Dimensions"]:
                dimensions[pair["Key"]] = _evaluate(pair["Value"], line)
            metric = made["MetricNamespace"], made["MetricName"], dimensions
            counts.append((metric, float(made["MetricValue"])))
    return counts


def counted_by_function(line: dict[str, Any]) -> Counts:
    """Return what CloudWatch makes of a function's line (EMF)."""
    counts = []
    for directive in line["_aws"]["CloudWatchMetrics"]:
        (names,) = directive["Dimensions"]
        dimensions = {name: line[name] for name in names}
        for each in directive["Metrics"]:
            metric = directive["Namespace"], each["Name"], dimensions
            counts.append((metric, line[each["Name"]]))
    return counts
