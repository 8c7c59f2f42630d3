"""Evaluate the alarms of a template over streams of requests, as CloudWatch does.

Windows slide with the minutes. AWS does not say whether FILL fills a metric that has no value at
all in the window: here it does not.
"""

import math
import operator
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, NamedTuple

from tests.support.stack import Template, properties_by_name

Metric = tuple[str, str, frozenset[tuple[str, str]]]
"""A metric's namespace, name and dimensions."""

MINUTES = range(-7 * 60, 12 * 60 + 1)
"""What is evaluated: 12 hours, and before them more than the longest window."""

_COMPARE = {
    "GreaterThanThreshold": operator.gt,
    "LessThanThreshold": operator.lt,
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


Day = dict[Metric, list[Stream]]


@cache
def _numbers(per_minute: float, first: int, last: int) -> list[int]:
    """Return how many values of a stream came until each minute."""
    passed = [min(max(minute, first), last) - first for minute in MINUTES]
    return [int(per_minute * minutes + 1e-9) for minutes in passed]


def _statistic(day: Day, asked: dict[str, Any]) -> Callable[[int], float]:
    """Return what gives an alarm's metric, over its period, at a minute."""
    named = asked["Metric"]
    pairs = {pair["Name"]: pair["Value"] for pair in named["Dimensions"]}
    name = metric(named["Namespace"], named["MetricName"], pairs)
    streams = day.get(name, [Stream(0, 0, 0, 0)])
    values = [stream.value for stream in streams]
    numbers = list(zip(*(_numbers(*stream[1:]) for stream in streams), strict=True))
    count: list[int] = [sum(each) for each in numbers]
    total: list[float] = [sum(map(operator.mul, values, each)) for each in numbers]

    length: int = asked["Period"] // 60

    def at(minute: int) -> float:
        end = MINUTES.index(minute)
        start = end - length
        number, amount = count[end] - count[start], total[end] - total[start]
        if number == 0:
            return math.nan
        return amount / {"Sum": 1, "Average": number}[asked["Stat"]]

    return at


def _of_those_there(function: Any) -> Any:
    def apply(values: list[float]) -> float:
        there = [value for value in values if not math.isnan(value)]
        return function(there) if there else math.nan

    return apply


# Metric math: using-metric-math.html in CloudWatch's guide.
_FUNCTIONS: dict[str, Any] = {
    "IF": lambda condition, yes, no: yes if condition else no,
    "FILL": lambda value, _: value,
    "MAX": _of_those_there(max),
    "SUM": _of_those_there(sum),
}


def _breaches(alarm: dict[str, Any], day: Day) -> Callable[[int], bool]:
    """Return what tells of the period that ends with a minute whether it breaches the threshold."""
    result, *metrics = alarm["Metrics"]
    assert not any(each["ReturnData"] for each in metrics)
    expression = compile(
        result["Expression"].strip(), alarm["AlarmDescription"], "eval"
    )
    statistics = {each["Id"]: _statistic(day, each["MetricStat"]) for each in metrics}
    missing = {"breaching": True, "notBreaching": False}[alarm["TreatMissingData"]]
    compare = _COMPARE[alarm["ComparisonOperator"]]

    @cache
    def at(minute: int) -> bool:
        values = {name: statistic(minute) for name, statistic in statistics.items()}
        value = eval(expression, _FUNCTIONS, values)  # noqa: S307 - the template's
        return missing if math.isnan(value) else compare(value, alarm["Threshold"])

    return at


def ringing(template: Template, day: Day) -> dict[str, set[int]]:
    """Return for each alarm the minutes, from 1, at which it is in ALARM."""
    found = {}
    for name, alarm in properties_by_name(template, "AWS::CloudWatch::Alarm").items():
        breaches, periods = _breaches(alarm, day), alarm["EvaluationPeriods"]
        needed = alarm.get("DatapointsToAlarm", periods)
        (length,) = {each["MetricStat"]["Period"] for each in alarm["Metrics"][1:]}
        found[name] = {
            now
            for now in range(1, MINUTES.stop)
            if sum(breaches(now - back * length // 60) for back in range(periods))
            >= needed
        }
    composites = properties_by_name(template, "AWS::CloudWatch::CompositeAlarm")
    for name, alarm in composites.items():
        rule = alarm["AlarmRule"].replace("AND", "&").replace("OR", "|")
        found[name] = eval(rule, {"ALARM": found.__getitem__})  # noqa: S307 - the template's
    return found


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
