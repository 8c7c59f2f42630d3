"""Writes one line per request, which is its log entry and its metrics in one.

CloudWatch reads the metrics from the log by the embedded metric format (EMF), which allows other
members in a line:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/
CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from animal_store import settings

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger


@cache
def logger() -> Logger:
    """Return the structured log for failures; never give it a key, Authorization header or body.

    It is imported only when something goes wrong: Powertools would add 26 M instructions to every
    cold start.
    """
    from aws_lambda_powertools import Logger

    # RFC 3339 times: Lambda ignores the level of a line whose time it cannot read.
    return Logger(use_rfc3339=True)


def _directive(dimension: str, *metrics: str) -> dict[str, Any]:
    """Tell CloudWatch which members of a line are metrics, and their dimensions."""
    return {
        "Namespace": settings.METRICS_NAMESPACE,
        "Dimensions": [["Stage", "Operation", dimension]],
        "Metrics": [{"Name": name} for name in metrics],
    }


# The sample count of Latency counts the requests. Units are left out: every log line would repeat
# them.
_WARM = _directive("Status", "Latency")
_COLD = _directive("Status", "Latency", "ColdStart")
_ERRORS = _directive("Code", "Errors")
_ERRORS_OF_VERSION = _directive("Version", "Errors")
_DEPRECATED_CALLS = _directive("KeyLabel", "DeprecatedCalls")


def _errors_of_version(line: dict[str, Any]) -> list[dict[str, Any]]:
    """Count a bug for its version too: DeploymentAlarm in template.yaml judges a canary by that."""
    if line["Code"] != "internal_error":
        return []
    line["Version"] = os.environ.get("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
    return [_ERRORS_OF_VERSION]


def write(  # noqa: PLR0913 - one argument for each fact of the line
    operation: str,
    status: int,
    *,
    latency_ms: float,
    store_calls: int,
    cold_start: bool,
    request_id: str,
    code: str | None = None,
    key_id: str | None = None,
    key_label: str | None = None,
    pet_id: int | None = None,
    deprecated: bool = False,
) -> None:
    """Write the line of a request.

    It bypasses the logger, which would cost 8 % of a get. Log bytes cost more than the rest of a
    request, so members without a value are left out.

    Args:
        operation: The operation's name in the interface.
        status: The HTTP status of the response.
        latency_ms: From the event to the response, in milliseconds.
        store_calls: Calls to DynamoDB, retries included.
        cold_start: Whether it is the first request of this execution environment.
        request_id: API Gateway's id of the request.
        code: The code of an error response.
        key_id: The id of the caller's key; also of one that is no longer valid.
        key_label: The label of the caller's key.
        pet_id: The id of the animal that was created.
        deprecated: Whether the operation is deprecated.
    """
    now = datetime.now(UTC)
    directives = [_COLD if cold_start else _WARM]
    line = {
        "level": "INFO",
        "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "request_id": request_id,
        "Stage": settings.STAGE,
        "Operation": operation,
        "Status": str(status),
        "Latency": round(latency_ms, 2),
        "StoreCalls": store_calls,
    }
    if cold_start:
        line["ColdStart"] = 1
    if key_id:
        line["KeyId"] = key_id
    if pet_id:
        line["PetId"] = pet_id
    if code:
        line |= {"Code": code, "Errors": 1}
        directives.append(_ERRORS)
        directives += _errors_of_version(line)
    if key_label:
        line["KeyLabel"] = key_label
        if deprecated:
            line["DeprecatedCalls"] = 1
            directives.append(_DEPRECATED_CALLS)
    if trace := os.environ.get("_X_AMZN_TRACE_ID"):
        line["xray_trace_id"] = trace.split(";", 1)[0].removeprefix("Root=")
    line["_aws"] = {"Timestamp": int(now.timestamp() * 1000), "CloudWatchMetrics": directives}
    # Write it in one piece: the local gateway answers requests in threads.
    sys.stdout.write(to_json(line).decode() + "\n")
