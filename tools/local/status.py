"""`/status`: what the service has done since it started, made of the same metrics that CloudWatch reads on AWS.

CloudWatch takes them from the functions' log lines, by the embedded metric format (EMF):
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("status.html")


@dataclass(slots=True)
class _Series:
    """The values of one metric with the same dimensions: their sum, their number, and the last for percentiles."""

    total: float = 0
    count: int = 0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=2000))

    def figures(self, name: str) -> dict[str, float]:
        """Return the sum of what is counted, the number and the nearest-rank percentiles of what is measured."""
        if isinstance(self.total, int):
            return {name: self.total}
        ordered = sorted(self.recent)
        percentiles = {f"{name} p{rank}": ordered[-(-len(ordered) * rank // 100) - 1] for rank in (50, 95)}
        return {"Requests": self.count} | percentiles


class Metrics:
    """A sink of the functions' output that keeps the metrics in it."""

    def __init__(self) -> None:
        self._start = datetime.now(UTC)
        self._lock = threading.Lock()
        # By the names of the dimensions, then by their values, then by the metric's name.
        self._tables: dict[tuple[str, ...], dict[tuple[str, ...], dict[str, _Series]]] = {}
        self._invalid = 0

    def __call__(self, line: str) -> None:
        """Take one line of output."""
        if '"_aws"' in line:
            with self._lock:
                try:
                    self._add(json.loads(line))
                except (AttributeError, KeyError, TypeError, ValueError):
                    self._invalid += 1  # CloudWatch would drop it silently; here somebody may wonder

    def _add(self, document: dict[str, Any]) -> None:
        for directive in document["_aws"]["CloudWatchMetrics"]:
            for names in directive["Dimensions"]:
                row = self._tables.setdefault(tuple(names), {}).setdefault(tuple(str(document[n]) for n in names), {})
                for metric in directive["Metrics"]:
                    series = row.setdefault(metric["Name"], _Series())
                    series.total += document[metric["Name"]]
                    series.count += 1
                    series.recent.append(document[metric["Name"]])

    def summary(self) -> dict[str, Any]:
        """Return a table of rows for each set of dimensions; percentiles are of the last 2000 values of a row."""
        with self._lock:
            tables = [
                [_row(dict(zip(names, values, strict=True)), row) for values, row in sorted(rows.items())]
                for names, rows in self._tables.items()
            ]
        seconds = round((datetime.now(UTC) - self._start).total_seconds())
        return {"seconds": seconds, "tables": tables, "invalid_metrics": self._invalid}


def _row(dimensions: dict[str, str], metrics: dict[str, _Series]) -> dict[str, Any]:
    figures = (series.figures(name) for name, series in metrics.items())
    return dimensions | {name: figure for each in figures for name, figure in each.items()}
