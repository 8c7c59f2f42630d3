"""Evaluate the alarms of a template over metrics, minute by minute, as CloudWatch does.

Windows slide with the minutes. AWS does not say whether FILL fills a metric that has no value at
all in the window: `fills` tells, and alarms should not depend on it.
"""

import json
import math
import operator
import re
from collections import defaultdict
from collections.abc import Mapping
from fnmatch import fnmatchcase
from itertools import accumulate
from typing import Any

from tests.support.stack import Template, properties_by_name

Metric = tuple[str, str, frozenset[tuple[str, str]]]
"""A metric's namespace, name and dimensions."""

_COMPARE = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}
_FILTER_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt}
_IS_BREACHING_IF_MISSING = {"breaching": True, "notBreaching": False}
_MISSING = math.nan


def metric(namespace: str, name: str, **dimensions: str) -> Metric:
    """Name a metric."""
    return namespace, name, frozenset(dimensions.items())


class Series:
    """The values of metrics in each minute from `first` to `last`."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self._minutes: dict[Metric, dict[int, list[float]]] = defaultdict(dict)
        self._totals: dict[Metric, list[list[float]]] = {}

    def count(
        self, values: list[tuple[Metric, float]], minute: int, times: float
    ) -> None:
        """Add values that were observed so many times in a minute."""
        for name, value in values:
            found = self._minutes[name].setdefault(minute, [0, 0])
            found[0] += value * times
            found[1] += times

    def until(self, minute: int, other: "Series") -> "Series":
        """Return this series until a minute, and another one afterwards."""
        joined = Series(self.first, self.last)
        for source, first, last in (
            (self, self.first, minute),
            (other, minute, self.last),
        ):
            for name, minutes in source._minutes.items():
                kept = range(first, last)
                own = {at: values for at, values in minutes.items() if at in kept}
                joined._minutes[name] |= own
        return joined

    def statistic(self, name: Metric, kind: str, end: int, minutes: int) -> float:
        """Return a statistic of the minutes before `end`; NaN if there is no value."""
        if name not in self._totals:
            every = range(self.first, self.last)
            values = [self._minutes[name].get(minute, [0, 0]) for minute in every]
            self._totals[name] = [
                [0, *accumulate(each)] for each in zip(*values, strict=True)
            ]
        start, end = (max(each - self.first, 0) for each in (end - minutes, end))
        total, count = (each[end] - each[start] for each in self._totals[name])
        if count == 0:
            return _MISSING
        return {"Sum": total, "SampleCount": count, "Average": total / count}[kind]


def _of_those_there(function: Any) -> Any:
    def apply(values: list[float]) -> float:
        there = [value for value in values if not math.isnan(value)]
        return function(there) if there else _MISSING

    return apply


def _functions(*, fills: bool) -> dict[str, Any]:
    """Return metric math's functions: using-metric-math.html in CloudWatch's guide."""
    return {
        "IF": lambda condition, yes, no: yes if condition else no,
        "FILL": lambda value, fill: fill if fills and math.isnan(value) else value,
        "MAX": _of_those_there(max),
        "MIN": _of_those_there(min),
        "SUM": _of_those_there(sum),
    }


class _Alarm:
    """A metric alarm."""

    def __init__(self, properties: dict[str, Any]) -> None:
        self.periods = properties["EvaluationPeriods"]
        self.to_alarm = properties.get("DatapointsToAlarm", self.periods)
        self.threshold = properties["Threshold"]
        self.compare = _COMPARE[properties["ComparisonOperator"]]
        self.if_missing = _IS_BREACHING_IF_MISSING[properties["TreatMissingData"]]
        self.metrics = []
        for each in properties["Metrics"]:
            if "Expression" in each:
                self.value = compile(each["Expression"].strip(), each["Id"], "eval")
                continue
            asked, stat = each["MetricStat"]["Metric"], each["MetricStat"]["Stat"]
            pairs = {pair["Name"]: pair["Value"] for pair in asked["Dimensions"]}
            name = metric(asked["Namespace"], asked["MetricName"], **pairs)
            self.metrics.append((each["Id"], name, stat, each["MetricStat"]["Period"]))

    def rings(self, series: Series, now: int, functions: dict[str, Any]) -> bool:
        breaching = 0
        for back in range(self.periods):
            values = {}
            for name, each, stat, period in self.metrics:
                minutes = period // 60
                end = now - back * minutes
                values[name] = series.statistic(each, stat, end, minutes)
            value = eval(self.value, functions, values)  # noqa: S307 - the template's
            if math.isnan(value):
                breaching += self.if_missing
            else:
                breaching += self.compare(value, self.threshold)
        return bool(breaching >= self.to_alarm)


class Alarms:
    """The alarms of a template whose references are resolved."""

    def __init__(self, template: Template, *, fills: bool = False) -> None:
        self._functions = _functions(fills=fills)
        metric_alarms = properties_by_name(template, "AWS::CloudWatch::Alarm")
        self._metric_alarms = {
            name: _Alarm(alarm) for name, alarm in metric_alarms.items()
        }
        self._rules = {
            name: alarm["AlarmRule"].replace("AND", "and").replace("OR", "or")
            for name, alarm in properties_by_name(
                template, "AWS::CloudWatch::CompositeAlarm"
            ).items()
        }

    def that_ring(self, series: Series, now: int) -> list[str]:
        """Return the names of the alarms that are in ALARM at a minute."""
        ringing = [
            name
            for name, alarm in self._metric_alarms.items()
            if alarm.rings(series, now, self._functions)
        ]
        states = {"ALARM": ringing.__contains__}
        for name, rule in self._rules.items():
            if eval(rule, states):  # noqa: S307 - the template's
                ringing.append(name)
        return ringing


def counted_in_log(
    template: Template, group: str, line: dict[str, Any]
) -> list[tuple[Metric, float]]:
    """Return the metrics, with their values, that the filters of a log group make of a line."""
    found = []
    for each in properties_by_name(template, "AWS::Logs::MetricFilter").values():
        if f"{each['LogGroupName']}.Arn" == group and _matches(
            each["FilterPattern"], line
        ):
            (made,) = each["MetricTransformations"]
            dimensions = {
                pair["Key"]: line[pair["Value"].removeprefix("$.")]
                for pair in made["Dimensions"]
            }
            name = metric(made["MetricNamespace"], made["MetricName"], **dimensions)
            found.append((name, float(made["MetricValue"])))
    return found


def _matches(pattern: str, line: dict[str, Any]) -> bool:
    """Tell whether a line matches: FilterAndPatternSyntax.html in CloudWatch Logs' guide."""

    def compare(member: str, relation: str, text: str) -> bool:
        found, value = line[member], json.loads(text)
        if isinstance(value, str):
            return fnmatchcase(str(found), value) is (relation == "=")
        return not isinstance(found, str) and _FILTER_COMPARE[relation](found, value)

    python = re.sub(
        r'\$\.(\w+) (\S+) ("[^"]*"|[\d.]+)',
        lambda found: f"compare{found.groups()!r}",
        pattern.strip().strip("{}").replace("&&", "and").replace("||", "or"),
    )
    return bool(eval(python.strip(), {"compare": compare}))  # noqa: S307 - the template's


def counted_by_function(line: Mapping[str, Any]) -> list[Metric]:
    """Return the metrics that CloudWatch makes of a function's line (EMF), each counted once."""
    found = []
    for directive in line.get("_aws", {}).get("CloudWatchMetrics", []):
        (names,) = directive["Dimensions"]
        dimensions = {name: line[name] for name in names}
        for each in directive["Metrics"]:
            found.append(metric(directive["Namespace"], each["Name"], **dimensions))
            assert line[each["Name"]] == 1
    return found
