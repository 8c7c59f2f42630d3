"""`/status`: what the service has done since it started, made of the same metrics that CloudWatch reads on AWS."""

import html
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.local.events import Answer
from tools.local.metrics import Metrics
from tools.local.pages import file_answer

_PAGE = Path(__file__).with_name("status.html")


class StatusPage:
    """Answers `/status` for people and `/status.json` for programs.

    Args:
        metrics: Of the functions.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._start = time.time()

    def answer(self, method: str, path: str, origin: str) -> Answer | None:  # noqa: ARG002 - the same for every page
        """Answer a GET or HEAD of the page; None for every other request."""
        if method not in {"GET", "HEAD"}:
            return None
        if path == "/status":
            return file_answer(self._html().encode(), "text/html; charset=utf-8")
        if path == "/status.json":
            return file_answer(json.dumps(self.summary(), indent=2).encode(), "application/json")
        return None

    def summary(self) -> dict[str, Any]:
        """Sum the metrics up; latencies are in milliseconds, percentiles of the last 2000 requests of each row."""
        cold_starts = dict(self._metrics.find("ColdStart", "Operation", "Status"))
        return {
            "since": datetime.fromtimestamp(self._start, UTC).isoformat(timespec="seconds"),
            "seconds": round(time.time() - self._start, 1),
            "requests": [
                {
                    "operation": key[0],
                    "status": int(key[1]),
                    "count": latency.count,
                    "latency_ms": {name: latency.percentile(int(name[1:])) for name in ("p50", "p95")},
                    "cold_starts": cold_starts[key].count if key in cold_starts else 0,
                }
                for key, latency in self._metrics.find("Latency", "Operation", "Status")
            ],
            "errors": [
                {"operation": operation, "code": code, "count": int(errors.total)}
                for (operation, code), errors in self._metrics.find("Errors", "Operation", "Code")
            ],
            "deprecated_calls": [
                {"operation": operation, "key_label": label, "count": int(calls.total)}
                for (operation, label), calls in self._metrics.find("DeprecatedCalls", "Operation", "KeyLabel")
            ],
            "invalid_metrics": self._metrics.invalid,
        }

    def _html(self) -> str:
        summary = self.summary()
        requests = [
            (
                *(row["operation"], row["status"], row["count"]),
                *(f"{row['latency_ms'][name]:.1f}" for name in ("p50", "p95")),
                row["cold_starts"],
            )
            for row in summary["requests"]
        ]
        since = summary["since"].replace("T", " ").replace("+00:00", " UTC")
        parts = [
            f"<p>Since {since}, for {_duration(summary['seconds'])}.",
            f"{sum(row['count'] for row in summary['requests'])} requests reached a function.</p>",
            _table(
                "Requests",
                ("Operation", "Status", "Count", "p50 ms", "p95 ms", "Cold starts"),
                requests,
            ),
            _table(
                "Errors by code", ("Operation", "Code", "Count"), [tuple(row.values()) for row in summary["errors"]]
            ),
            _table(
                "Calls of deprecated operations",
                ("Operation", "Key", "Count"),
                [tuple(row.values()) for row in summary["deprecated_calls"]],
            ),
        ]
        if summary["invalid_metrics"]:
            parts.append(f"<p>{summary['invalid_metrics']} lines claim to be metrics and are not.</p>")
        return _PAGE.read_text("utf-8").replace("<!-- summary -->", "\n".join(parts))


def _table(caption: str, heads: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """Render a table, or the fact that it is empty."""
    if not rows:
        return f"<h2>{caption}</h2><p>None yet.</p>"

    def cell(value: Any, tag: str) -> str:
        kind = ' class="number"' if tag == "td" and str(value)[:1].isdigit() else ""
        return f"<{tag}{kind}>{html.escape(str(value))}</{tag}>"

    lines = ["".join(cell(value, tag) for value in row) for tag, row in [("th", heads), *(("td", row) for row in rows)]]
    return f'<h2>{caption}</h2><div class="scroll"><table><tr>{"</tr><tr>".join(lines)}</tr></table></div>'


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
