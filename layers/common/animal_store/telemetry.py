"""Logs each request that a function answers, with its metrics in the same line.

CloudWatch reads the metrics from the log, in the embedded metric format (EMF). In this format, a
line may have other members, too:
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

    from animal_store.invocation import Invocation
    from animal_store.response import Response


@cache
def logger() -> Logger:
    """Return the logger for failures. Never log a key, an Authorization header or a body.

    Powertools is imported only at the first failure: its import would add 36 million processor
    instructions to each cold start.
    """
    from aws_lambda_powertools import Logger

    # Use RFC 3339 times: Lambda ignores the level of a line whose time has another format.
    return Logger(use_rfc3339=True, utc=True)


def _directive(metric: str, dimension: str) -> dict[str, Any]:
    """Return the EMF directive that declares a metric.

    Args:
        metric: The metric's name. The line's member of the same name has its value.
        dimension: The member that is the metric's third dimension, after `Stage` and `Operation`.
    """
    return {
        "Namespace": settings.METRICS_NAMESPACE,
        "Dimensions": [["Stage", "Operation", dimension]],
        "Metrics": [{"Name": metric}],
    }


# AWS bills each combination of dimension values as a metric. API Gateway and Lambda count requests
# and measure their duration free of charge, so only errors and deprecated calls are counted here.
_DIRECTIVES = {
    "Errors": _directive("Errors", "Code"),
    "Version": _directive("Errors", "Version"),
    "DeprecatedCalls": _directive("DeprecatedCalls", "KeyLabel"),
}
"""Maps a member of a log line to a directive; each line with that member gets the directive."""

# For each version, the deployment alarms in template.yaml count the responses with these codes.
# `service_unavailable` is among them: a version that cannot reach the store, for instance because
# of a wrong address, is as broken as one that crashes.
_FAULTS = {"internal_error", "service_unavailable"}


def request_ids(request_context: Mapping[str, Any]) -> dict[str, str]:
    """Return a request's ids: a client can choose `requestId`, but not `extendedRequestId`.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/
    api-gateway-variables-for-access-logging.html

    Args:
        request_context: The event's `requestContext`.
    """
    ids = {"request_id": request_context["requestId"]}
    # The events of the heartbeat (docs/reliability.md) and of `make run` have no extended id.
    extended_request_id = request_context.get("extendedRequestId")
    if extended_request_id:
        ids["extended_request_id"] = extended_request_id
    return ids


def write_line(  # noqa: PLR0913 - each argument is a fact of the line
    operation: str,
    response: Response,
    request_context: Mapping[str, Any],
    invocation: Invocation,
    *,
    latency_ms: float,
    cold_start: bool,
    deprecated: bool,
) -> None:
    """Write the log line of a request.

    Members without a value are left out, because AWS bills the log by its bytes.

    Args:
        operation: The operation's `operationId` in openapi.yaml.
        response: The response.
        request_context: The event's `requestContext`. A heartbeat's stage is
            `heartbeat-STAGE`, so that its 401 does not count as a client's error.
        invocation: The invocation that answered the request.
        latency_ms: The time from the event to the response, in milliseconds.
        cold_start: Whether the request is the first of this execution environment.
        deprecated: Whether the operation is deprecated.
    """
    now = datetime.now(UTC)
    line: dict[str, Any] = {
        "level": "INFO",
        "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **request_ids(request_context),
        "Stage": request_context["stage"],
        "Operation": operation,
        "Status": str(response.status),
        "Latency": round(latency_ms, 2),
        "StoreCalls": invocation.store_calls,
    }
    optional = {
        "ColdStart": int(cold_start),
        "KeyId": invocation.key_id,
        "KeyLabel": invocation.key_label,
        "CreatedId": response.created_id,
        "Code": response.error_code,
    }
    line |= {name: value for name, value in optional.items() if value}
    if response.error_code:
        line["Errors"] = 1
    if response.error_code in _FAULTS:
        line["Version"] = os.environ.get("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
    if deprecated and invocation.key_label:
        line["DeprecatedCalls"] = 1
    directives = [directive for member, directive in _DIRECTIVES.items() if member in line]
    if directives:
        milliseconds = int(now.timestamp() * 1000)
        line["_aws"] = {"Timestamp": milliseconds, "CloudWatchMetrics": directives}
    # Don't use the logger, which is slower. Write the text and "\n" in one call: threads of
    # `make run` may write at the same time.
    sys.stdout.write(to_json(line).decode() + "\n")
