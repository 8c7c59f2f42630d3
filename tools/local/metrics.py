"""Reads metrics from the functions' output as CloudWatch does from their logs: the embedded metric format (EMF).

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_MARK = '"_aws"'
_RECENT = 2000


@dataclass(slots=True)
class Series:
    """The values of one metric with the same dimensions.

    Args:
        count: How many there were.
        total: Their sum.
        recent: The last of them, for percentiles.
    """

    count: int = 0
    total: float = 0.0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def add(self, value: float) -> None:
        """Take one more value."""
        self.count += 1
        self.total += value
        self.recent.append(value)

    def percentile(self, percent: float) -> float:
        """Find the nearest-rank percentile of the recent values.

        Args:
            percent: Above 0, at most 100.
        """
        ordered = sorted(self.recent)
        rank = -(-len(ordered) * percent // 100)
        return ordered[int(rank) - 1]


class Metrics:
    """A sink of the functions' output that keeps the metrics in it and lets the rest pass."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, frozenset[tuple[str, str]]], Series] = {}
        self._lock = threading.Lock()
        self.invalid = 0

    def __call__(self, function: str, line: str) -> None:  # noqa: ARG002 - a sink's signature
        """Take one line of output."""
        if _MARK not in line:
            return
        with self._lock:
            try:
                for metric, dimensions, value in list(_values(json.loads(line))):
                    self._series.setdefault((metric, frozenset(dimensions.items())), Series()).add(value)
            except (AttributeError, KeyError, TypeError, ValueError):
                self.invalid += 1  # CloudWatch would drop it without a word; here somebody may wonder

    def find(self, metric: str, *dimensions: str) -> list[tuple[tuple[str, ...], Series]]:
        """Find the series of a metric.

        Args:
            metric: Its name.
            dimensions: Names of dimensions that the series have.

        Returns:
            The values of these dimensions, and the series; in the order of the values.
        """
        found = []
        with self._lock:
            for (name, pairs), series in self._series.items():
                values = dict(pairs)
                if name == metric and all(dimension in values for dimension in dimensions):
                    key = tuple(values[dimension] for dimension in dimensions)
                    found.append((key, Series(series.count, series.total, series.recent.copy())))
        return sorted(found, key=lambda pair: pair[0])


def _values(document: Any) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Take an EMF document apart: name, dimensions and value of each metric.

    Raises:
        KeyError: A dimension or a metric that the document declares is not in it.
        TypeError: A value is no number.
    """
    for directive in document["_aws"]["CloudWatchMetrics"]:
        for names in directive["Dimensions"]:
            dimensions = {name: str(document[name]) for name in names}
            for metric in directive["Metrics"]:
                given = document[metric["Name"]]
                for value in given if isinstance(given, list) else [given]:
                    yield metric["Name"], dimensions, float(value)
