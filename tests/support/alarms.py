"""Evaluate the alarms of a template over streams of requests, as CloudWatch does.

Windows slide with the minutes.
"""

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from math import isnan, nan
from operator import and_, ge, gt, lt, ne, or_
from typing import Any, NamedTuple

from tests.support.stack import Template, properties_by_name

Metric = tuple[str, str, frozenset[tuple[str, str]]]
"""A metric's namespace, name and dimensions."""

MINUTES = [*range(1, 60), *range(60, 12 * 60 + 1, 5)]
"""Those of the 12 hours that are looked at."""

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "GreaterThanThreshold": gt,
    "LessThanThreshold": lt,
    ">=": ge,
    "<": lt,
    "!=": ne,
}
_SIGNS = {"AND": and_, "&&": and_, "OR": or_, "||": or_}
# Metric math: using-metric-math.html in CloudWatch's guide.
_MATH: dict[str, Any] = {
    "IF": lambda condition, yes, no: yes if condition else no,
    "FILL": lambda value, filling: filling if isnan(value) else value,
    "SUM": sum,
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

    def until(self, minute: int) -> int:
        """Return how many have come."""
        passed = min(max(minute, self.first), self.last) - self.first
        return int(self.per_minute * passed + 1e-9)


Day = dict[Metric, list[Stream]]


def _statistic(day: Day, asked: dict[str, Any], minute: int) -> float:
    """Return a statistic of a metric over its period until a minute, NaN without values."""
    dimensions = {pair["Name"]: pair["Value"] for pair in asked["Dimensions"]}
    name = metric(asked["Namespace"], asked["MetricName"], dimensions)
    number, total = 0, 0.0
    for stream in day.get(name, []):
        came = stream.until(minute) - stream.until(minute - asked["Period"] // 60)
        number += came
        total += came * stream.value
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
        asked = query["MetricStat"]
        own = {"Statistic": asked["Stat"], "Period": asked["Period"]}
        values[query["Id"]] = _statistic(day, asked["Metric"] | own, minute)
    return float(eval(result["Expression"], _MATH, values))  # noqa: S307 - the template's


def _rings(day: Day, alarm: dict[str, Any], now: int) -> bool:
    compare, threshold = _COMPARE[alarm["ComparisonOperator"]], alarm["Threshold"]
    period = alarm.get("Period") or alarm["Metrics"][1]["MetricStat"]["Period"]
    periods = alarm["EvaluationPeriods"]
    breaching = 0
    for back in range(periods):
        value = _value(day, alarm, now - back * period // 60)
        missing = isnan(value) and alarm["TreatMissingData"] == "breaching"
        breaching += missing or compare(value, float(threshold))
    return not breaching < alarm.get("DatapointsToAlarm", periods)


def _combine(words: Iterator[str], value_of: Callable[[str], Any]) -> Any:
    """Apply AND and OR from left to right, up to the closing parenthesis."""
    result, sign = None, None
    for word in words:
        if word == ")":
            break
        if word in _SIGNS:
            sign = _SIGNS[word]
            continue
        value = _combine(words, value_of) if word == "(" else value_of(word)
        result = sign(result, value) if sign else value
    return result


def ringing(template: Template, day: Day) -> dict[str, set[int]]:
    """Return for each alarm the minutes at which it is in ALARM and not suppressed."""
    found = {}
    for name, alarm in properties_by_name(template, "AWS::CloudWatch::Alarm").items():
        found[name] = {now for now in MINUTES if _rings(day, alarm, now)}
    composites = properties_by_name(template, "AWS::CloudWatch::CompositeAlarm")
    for name, alarm in composites.items():
        words = re.findall(r'ALARM\("\w+"\)|AND|OR|[()]', alarm["AlarmRule"])
        minutes = _combine(iter(words), lambda word: found[word.split('"')[1]])
        suppressor = alarm.get("ActionsSuppressor", "").removesuffix(".Arn")
        found[name] = minutes - found.get(suppressor, set())
    return found


def _holds(term: str, line: dict[str, Any]) -> bool:
    """Tell whether a line of a log has what a filter asks for: `$.status >= 500`."""
    member, sign, literal = term.removeprefix("$.").split(" ", 2)
    if literal.startswith('"'):
        return fnmatchcase(line[member], literal.strip('"')) is (sign == "=")
    return _COMPARE[sign](line[member], int(literal))


def counted_in_log(
    template: Template, line: dict[str, Any]
) -> Iterator[tuple[Metric, float]]:
    """Yield the metrics, with their values, that the filters make of a line of the access log."""
    for each in properties_by_name(template, "AWS::Logs::MetricFilter").values():
        # FilterAndPatternSyntax.html in CloudWatch Logs' guide; `*` is anything.
        words = re.findall(
            r'\$\.\w+ \S+ (?:"[^"]*"|\d+)|&&|\|\||[()]', each["FilterPattern"]
        )
        holds = _combine(iter(words), lambda term: _holds(term, line))
        if holds:
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
