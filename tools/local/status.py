"""`/status`: what the service has done since it started, made of the same metrics that CloudWatch reads on AWS.

CloudWatch takes them from the functions' log lines, by the embedded metric format (EMF):
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

import html
import json
import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).with_name("status.html")
_RECENT = 2000


@dataclass(slots=True)
class Series:
    """The values of one metric with the same dimensions: their number, their sum, and the last for percentiles."""

    count: int = 0
    total: float = 0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def add(self, value: float) -> None:
        """Take one more value."""
        self.count += 1
        self.total += value
        self.recent.append(value)

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
        self._tables: dict[tuple[str, ...], dict[tuple[str, ...], dict[str, Series]]] = {}
        self.invalid = 0

    def __call__(self, line: str) -> None:
        """Take one line of output."""
        if '"_aws"' not in line:
            return
        with self._lock:
            try:
                self._add(json.loads(line))
            except (AttributeError, KeyError, TypeError, ValueError):
                self.invalid += 1  # CloudWatch would drop it silently; here somebody may wonder

    def _add(self, document: dict[str, Any]) -> None:
        for directive in document["_aws"]["CloudWatchMetrics"]:
            metrics = [(metric["Name"], document[metric["Name"]] + 0) for metric in directive["Metrics"]]  # a number
            for names in directive["Dimensions"]:
                row = self._tables.setdefault(tuple(names), {}).setdefault(tuple(str(document[n]) for n in names), {})
                for name, value in metrics:
                    row.setdefault(name, Series()).add(value)

    def summary(self) -> dict[str, Any]:
        """Return a table of rows for each set of dimensions; percentiles are of the last 2000 requests of a row."""
        with self._lock:
            tables = [
                [
                    dict(zip(names, values, strict=True))
                    | {name: figure for metric, one in row.items() for name, figure in one.figures(metric).items()}
                    for values, row in sorted(rows.items())
                ]
                for names, rows in self._tables.items()
            ]
        seconds = round((datetime.now(UTC) - self._start).total_seconds(), 1)
        since = self._start.isoformat(timespec="seconds")
        return {"since": since, "seconds": seconds, "tables": tables, "invalid_metrics": self.invalid}

    def page(self) -> str:
        """Return the summary as HTML."""
        summary = self.summary()
        parts = [f"<p>Since {summary['since']}, for {summary['seconds']:.0f} s.</p>"]
        parts += [_table(rows) for rows in summary["tables"]] or ["<p>No request has reached a function yet.</p>"]
        if summary["invalid_metrics"]:
            parts.append(f"<p>{summary['invalid_metrics']} lines claim to be metrics and are not.</p>")
        return _PAGE.read_text("utf-8").replace("<!-- summary -->", "\n".join(parts))


def _table(rows: list[dict[str, Any]]) -> str:
    # The same everywhere: it would only make the page wide.
    names = [name for name in rows[0] if name != "Stage"]
    lines = [names, *([_text(row.get(name, "")) for name in names] for row in rows)]
    cells = ["".join(f"<td>{html.escape(text)}</td>" for text in line) for line in lines]
    cells[0] = cells[0].replace("td>", "th>")
    return f'<div class="scroll"><table><tr>{"</tr><tr>".join(cells)}</tr></table></div>'


def _text(value: str | float) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)
