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

Metric = tuple[str, str, dict[str, str]]
"""Namespace, name and dimensions."""

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
    """A value of a metric that comes evenly: so often a minute before and after minute 0."""

    metric: Metric
    value: float
    before: float
    after: float

    def until(self, minute: int) -> int:
        """Return how often it comes from minute 0 until another."""
        return floor(minute * (self.after if minute > 0 else self.before) + 1e-9)


Day = list[Stream]


def _statistic(day: Day, asked: dict[str, Any], minute: int) -> float:
    """Return a statistic of a metric over its period until a minute, NaN without values."""
    named = asked.get("Metric", asked)
    dimensions = {pair["Name"]: pair["Value"] for pair in named["Dimensions"]}
    metric = named["Namespace"], named["MetricName"], dimensions
    number, total = 0, 0.0
    for stream in day:
        if stream.metric == metric:
            came = stream.until(minute) - stream.until(minute - asked["Period"] // 60)
            number += came
            total += came * stream.value
    if number and asked.get("Statistic") == "Average":
        return total / number
    return total if number else nan


def _rings(day: Day, alarm: dict[str, Any], now: int) -> bool:
    """Tell whether enough of an alarm's last periods breach its threshold."""
    expression, asked = "value", {"value": alarm}
    if "Metrics" in alarm:
        result, *queries = alarm["Metrics"]
        expression = result["Expression"]
        asked = {query["Id"]: query["MetricStat"] for query in queries}
    period = max(each["Period"] for each in asked.values())
    compare = _COMPARE[alarm["ComparisonOperator"]]
    breaching = 0
    for back in range(alarm["EvaluationPeriods"]):
        minute = now - back * period // 60
        values = {name: _statistic(day, each, minute) for name, each in asked.items()}
        value = _evaluate(expression, values)
        missing = isnan(value) and alarm["TreatMissingData"] == "breaching"
        breaching += missing or compare(value, float(alarm["Threshold"]))
    needed: int = alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"])
    return breaching >= needed


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


def counted_in_log(
    template: Template, line: dict[str, Any]
) -> list[tuple[Metric, float]]:
    """Return what the metric filters make of a line of the access log."""
    counts = []
    for each in properties_by_name(template, "AWS::Logs::MetricFilter").values():
        if _evaluate(each["FilterPattern"], line):
            (made,) = each["MetricTransformations"]
            dimensions = {}
            for pair in made["Dimensions"]:
                dimensions[pair["Key"]] = line[pair["Value"].removeprefix("$.")]
            metric = made["MetricNamespace"], made["MetricName"], dimensions
            counts.append((metric, float(made["MetricValue"])))
    return counts
