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
    from collections.abc import Mapping

    from aws_lambda_powertools import Logger


@cache
def logger() -> Logger:
    """Return the structured log for failures; never give it a key, Authorization header or body.

    It is imported only when something goes wrong: Powertools would add 24 M instructions to every
    cold start.
    """
    from aws_lambda_powertools import Logger

    # RFC 3339 times: Lambda ignores the level of a line whose time it cannot read.
    return Logger(use_rfc3339=True, utc=True)


def _directive(metric: str, dimension: str) -> dict[str, Any]:
    """Tell CloudWatch which members of a line are a metric and its third dimension."""
    return {
        "Namespace": settings.METRICS_NAMESPACE,
        "Dimensions": [["Stage", "Operation", dimension]],
        "Metrics": [{"Name": metric}],
    }


# Each combination of values is billed as a metric. API Gateway and Lambda count requests and their
# duration for nothing: here errors and deprecated calls are counted.
_ERRORS = _directive("Errors", "Code")
_ERRORS_OF_VERSION = _directive("Errors", "Version")
_DEPRECATED_CALLS = _directive("DeprecatedCalls", "KeyLabel")

# A version that cannot reach the store (no authorities, a wrong address) is as broken as one that
# crashes.
_FAULTS = {"internal_error", "service_unavailable"}


def _errors_of_version(line: dict[str, Any]) -> list[dict[str, Any]]:
    """Count a fault for its version too, by which DeploymentAlarm in template.yaml judges it."""
    if line["Code"] not in _FAULTS:
        return []
    line["Version"] = os.environ.get("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
    return [_ERRORS_OF_VERSION]


def request_ids(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids of a request: the one that its client may choose, and API Gateway's own.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/
    api-gateway-variables-for-access-logging.html

    Args:
        request: The event's `requestContext`.
    """
    ids = {"request_id": request["requestId"]}
    # The heartbeat's events and the local gateway's have none.
    if own := request.get("extendedRequestId"):
        ids["extended_request_id"] = own
    return ids


def write(  # noqa: PLR0913 - one argument for each fact of the line
    operation: str,
    status: int,
    request: Mapping[str, Any],
    *,
    latency_ms: float,
    store_calls: int,
    cold_start: bool,
    code: str | None = None,
    key_id: str | None = None,
    key_label: str | None = None,
    created_id: int | None = None,
    deprecated: bool = False,
) -> None:
    """Write the line of a request.

    It bypasses the logger, which is slower. Members without a value are left out, because log
    bytes are billed.

    Args:
        operation: The operation's name in the interface.
        status: The HTTP status of the response.
        request: The event's `requestContext`. Its stage keeps the heartbeat's metrics apart.
        latency_ms: From the event to the response, in milliseconds.
        store_calls: Calls to DynamoDB, retries included.
        cold_start: Whether it is the first request of this execution environment.
        code: The code of an error response.
        key_id: The id of the key that was sent, valid or not; None unless it is well formed.
        key_label: The label of the caller's key.
        created_id: The id of the resource that was created.
        deprecated: Whether the operation is deprecated.
    """
    now = datetime.now(UTC)
    directives = []
    line = {
        "level": "INFO",
        "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **request_ids(request),
        "Stage": request["stage"],
        "Operation": operation,
        "Status": str(status),
        "Latency": round(latency_ms, 2),
        "StoreCalls": store_calls,
    }
    if cold_start:
        line["ColdStart"] = 1
    if key_id:
        line["KeyId"] = key_id
    if created_id:
        line["CreatedId"] = created_id
    if code:
        line |= {"Code": code, "Errors": 1}
        directives.append(_ERRORS)
        directives += _errors_of_version(line)
    if key_label:
        line["KeyLabel"] = key_label
        if deprecated:
            line["DeprecatedCalls"] = 1
            directives.append(_DEPRECATED_CALLS)
    if directives:
        milliseconds = int(now.timestamp() * 1000)
        line["_aws"] = {"Timestamp": milliseconds, "CloudWatchMetrics": directives}
    # Write it in one piece: the local gateway answers requests in threads.
    sys.stdout.write(to_json(line).decode() + "\n")
