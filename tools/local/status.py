"""`/status`: what the service has done since it started, made of the same metrics that CloudWatch reads on AWS.

CloudWatch takes them from the functions' log lines, by the embedded metric format (EMF):
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("status.html")


class Metrics:
    """A sink of the functions' output that keeps the metrics in it."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._lock = threading.Lock()
        # By the names of the dimensions and by their values: the sums of what is counted, the last of what is measured.
        self._tables: Any = defaultdict(partial(defaultdict, partial(defaultdict, int)))
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
                row = self._tables[tuple(names)][tuple(str(document[name]) for name in names)]
                for metric in directive["Metrics"]:
                    if isinstance(value := document[metric["Name"]], int):
                        row[metric["Name"]] += value
                    else:
                        row["Requests"] += 1
                        row.setdefault(metric["Name"], deque(maxlen=2000)).append(value)

    def summary(self) -> dict[str, Any]:
        """Return a table of rows for each set of dimensions; nearest-rank percentiles are of the last 2000 values."""
        with self._lock:
            tables = [
                [dict(zip(names, values, strict=True)) | dict(_figures(row)) for values, row in sorted(rows.items())]
                for names, rows in self._tables.items()
            ]
        seconds = round(time.monotonic() - self._start)
        return {"seconds": seconds, "tables": tables, "invalid_metrics": self._invalid}


def _figures(row: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in row.items():
        if isinstance(value, deque):
            for rank in (50, 95):
                yield f"{name} p{rank}", sorted(value)[-(-len(value) * rank // 100) - 1]
        else:
            yield name, value
