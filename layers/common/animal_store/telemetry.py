"""What an operator sees of each request: one line, which is its log entry and its metrics in one.

CloudWatch takes the metrics out of the log by the embedded metric format (EMF), which lets a line have other members:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import Any

from aws_lambda_powertools import Logger
from pydantic_core import to_json

from animal_store import settings

# RFC 3339 times: Lambda ignores the level of a line whose time it cannot read.
logger = Logger(use_rfc3339=True)
"""The structured log of what goes wrong. Never give it a key, an Authorization header or a body."""


def _directive(dimension: str, **units: str) -> dict[str, Any]:
    """Tell CloudWatch which members of a line are metrics, and what they are counted by."""
    return {
        "Namespace": settings.METRICS_NAMESPACE,
        "Dimensions": [["service", "Stage", "Operation", dimension]],
        "Metrics": [{"Name": name, "Unit": unit} for name, unit in units.items()],
    }


_REQUESTS = _directive("Status", Requests="Count", Latency="Milliseconds", StoreCalls="Count", ColdStart="Count")
_ERRORS = _directive("Code", Errors="Count")
_DEPRECATED_CALLS = _directive("KeyLabel", DeprecatedCalls="Count")


def write(  # noqa: PLR0913 - one argument for each fact of the line
    operation: str,
    status: int,
    *,
    latency_ms: float,
    store_calls: int,
    cold_start: bool,
    request_id: str,
    code: str | None = None,
    key_label: str | None = None,
    deprecated: bool = False,
) -> None:
    """Write the line of a request.

    Not through the logger, which would take 8 % of a get for it.

    Args:
        operation: The interface's name of the operation.
        status: The HTTP status of the answer.
        latency_ms: From the event to the answer, in milliseconds.
        store_calls: Calls of DynamoDB, retries included.
        cold_start: Whether it is the first request of this execution environment.
        request_id: API Gateway's id of the request.
        code: The code of an error answer.
        key_label: The label of the caller's key.
        deprecated: Whether the operation is deprecated.
    """
    now = datetime.now(UTC)
    directives = [_REQUESTS]
    line = {
        "level": "INFO",
        "message": "request",
        "timestamp": now,
        "service": settings.SERVICE,
        "request_id": request_id,
        "Stage": settings.STAGE,
        "Operation": operation,
        "Status": str(status),
        "Requests": 1,
        "Latency": latency_ms,
        "StoreCalls": store_calls,
        "ColdStart": int(cold_start),
        "_aws": {"Timestamp": int(now.timestamp() * 1000), "CloudWatchMetrics": directives},
    }
    if code:
        line |= {"Code": code, "Errors": 1}
        directives.append(_ERRORS)
    if key_label:
        line["KeyLabel"] = key_label
        if deprecated:
            line["DeprecatedCalls"] = 1
            directives.append(_DEPRECATED_CALLS)
    if trace := os.environ.get("_X_AMZN_TRACE_ID"):
        line["xray_trace_id"] = trace.split(";", 1)[0].removeprefix("Root=")
    # In one piece: the local gateway answers requests in threads.
    sys.stdout.write(to_json(line).decode() + "\n")
