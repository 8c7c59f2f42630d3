"""Evaluate the alarms of a template over streams of requests, as CloudWatch does.

Windows slide with the minutes. AWS does not say whether FILL fills a metric that has no value at
all in the window: here it does not.
"""

import math
import operator
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

from tests.support.stack import Template, properties_by_name

Metric = tuple[str, str, frozenset[tuple[str, str]]]
"""A metric's namespace, name and dimensions."""

_COMPARE = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}


def metric(namespace: str, name: str, dimensions: dict[str, str]) -> Metric:
    """Name a metric."""
    return namespace, name, frozenset(dimensions.items())


class Stream(NamedTuple):
    """Values of a metric that come evenly from one minute until another."""

    value: float
    per_minute: float
    first: int
    last: int

    def number(self, start: int, end: int) -> int:
        """Return how many values come between two minutes."""
        return self._until(end) - self._until(start)

    def _until(self, minute: int) -> int:
        minutes = min(max(minute, self.first), self.last) - self.first
        return int(self.per_minute * minutes + 1e-9)


Day = dict[Metric, list[Stream]]


def _statistic(streams: Iterable[Stream], stat: str, start: int, end: int) -> float:
    numbers = [(each.value, each.number(start, end)) for each in streams]
    total = sum(value * number for value, number in numbers)
    count = sum(number for _, number in numbers)
    if count == 0:
        return math.nan
    return {"Sum": total, "SampleCount": count, "Average": total / count}[stat]


def _of_those_there(function: Any) -> Any:
    def apply(values: list[float]) -> float:
        there = [value for value in values if not math.isnan(value)]
        return function(there) if there else math.nan

    return apply


@cache
def _compiled(expression: str) -> CodeType:
    return compile(expression.strip(), expression, "eval")


def _breaches(alarm: dict[str, Any], day: Day, now: int) -> Iterator[bool]:
    """Tell of each period up to now whether it breaches the threshold."""
    # Metric math: using-metric-math.html in CloudWatch's guide.
    functions = {
        "IF": lambda condition, yes, no: yes if condition else no,
        "FILL": lambda value, _: value,
        "MAX": _of_those_there(max),
        "SUM": _of_those_there(sum),
    }
    result, *metrics = alarm["Metrics"]
    for back in range(alarm["EvaluationPeriods"]):
        values = {}
        for each in metrics:
            asked, minutes = each["MetricStat"], each["MetricStat"]["Period"] // 60
            pairs = {
                pair["Name"]: pair["Value"] for pair in asked["Metric"]["Dimensions"]
            }
            name = metric(
                asked["Metric"]["Namespace"], asked["Metric"]["MetricName"], pairs
            )
            end = now - back * minutes
            values[each["Id"]] = _statistic(
                day.get(name, []), asked["Stat"], end - minutes, end
            )
        value = eval(_compiled(result["Expression"]), functions, values)  # noqa: S307 - the template's
        if math.isnan(value):
            yield {"breaching": True, "notBreaching": False}[alarm["TreatMissingData"]]
        else:
            yield _COMPARE[alarm["ComparisonOperator"]](value, alarm["Threshold"])


def ringing(template: Template, day: Day, now: int) -> list[str]:
    """Return the names of the alarms that are in ALARM at a minute."""
    names = []
    for name, alarm in properties_by_name(template, "AWS::CloudWatch::Alarm").items():
        needed = alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"])
        if sum(_breaches(alarm, day, now)) >= needed:
            names.append(name)
    composites = properties_by_name(template, "AWS::CloudWatch::CompositeAlarm")
    for name, alarm in composites.items():
        rule = alarm["AlarmRule"].replace("AND", "and").replace("OR", "or")
        if eval(_compiled(rule), {"ALARM": names.__contains__}):  # noqa: S307 - the template's
            names.append(name)
    return names


def counted_in_log(
    template: Template, group: str, line: dict[str, Any]
) -> Iterator[tuple[Metric, float]]:
    """Yield the metrics, with their values, that the filters of a log group make of a line."""
    for each in properties_by_name(template, "AWS::Logs::MetricFilter").values():
        # FilterAndPatternSyntax.html in CloudWatch Logs' guide; `*` is anything.
        pattern = each["FilterPattern"].strip(" {}")
        pattern = re.sub(r'\$\.(\w+) = (".*?")', r"like(\1, \2)", pattern)
        pattern = re.sub(r'\$\.(\w+) != (".*?")', r"not like(\1, \2)", pattern)
        for sign, word in (("$.", ""), ("&&", "and"), ("||", "or")):
            pattern = pattern.replace(sign, word)
        is_read = f"{each['LogGroupName']}.Arn" == group
        if is_read and eval(pattern, {"like": fnmatchcase}, line):  # noqa: S307 - the template's
            (made,) = each["MetricTransformations"]
            dimensions = {
                pair["Key"]: line[pair["Value"].removeprefix("$.")]
                for pair in made["Dimensions"]
            }
            name = metric(made["MetricNamespace"], made["MetricName"], dimensions)
            yield name, float(made["MetricValue"])


def counted_by_function(line: dict[str, Any]) -> Iterator[tuple[Metric, float]]:
    """Yield the metrics, with their values, that CloudWatch makes of a function's line (EMF)."""
    for directive in line.get("_aws", {}).get("CloudWatchMetrics", []):
        (names,) = directive["Dimensions"]
        dimensions = {name: line[name] for name in names}
        for each in directive["Metrics"]:
            name = metric(directive["Namespace"], each["Name"], dimensions)
            yield name, line[each["Name"]]
