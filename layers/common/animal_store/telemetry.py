"""What an operator sees of each request: one log line, and metrics in CloudWatch's embedded metric format (EMF)."""

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from animal_store import settings

logger = Logger()
"""The structured log. Never give it a key, an Authorization header or a body."""


def count_request(operation: str, status: int, latency_ms: float, store_calls: int, *, cold_start: bool) -> None:
    """Count a request by operation and status.

    Args:
        operation: The interface's name of the operation.
        status: The HTTP status of the answer.
        latency_ms: From the event to the answer, in milliseconds.
        store_calls: Calls of DynamoDB, retries included.
        cold_start: Whether it is the first request of this execution environment.
    """
    _emit(
        {"Operation": operation, "Status": str(status)},
        ("Requests", MetricUnit.Count, 1),
        ("Latency", MetricUnit.Milliseconds, latency_ms),
        ("StoreCalls", MetricUnit.Count, store_calls),
        ("ColdStart", MetricUnit.Count, int(cold_start)),
    )


def count_error(operation: str, code: str) -> None:
    """Count an error answer by operation and `code`."""
    _emit({"Operation": operation, "Code": code}, ("Errors", MetricUnit.Count, 1))


def count_deprecated_call(operation: str, key_label: str) -> None:
    """Count a call of a deprecated operation by the label of the caller's key."""
    _emit({"Operation": operation, "KeyLabel": key_label}, ("DeprecatedCalls", MetricUnit.Count, 1))


def _emit(dimensions: dict[str, str], *values: tuple[str, MetricUnit, float]) -> None:
    # One object per request, not the shared `Metrics`: the local gateway answers requests in threads.
    metrics = EphemeralMetrics()
    for dimension, text in {"Stage": settings.STAGE, **dimensions}.items():
        metrics.add_dimension(dimension, text)
    for name, unit, value in values:
        metrics.add_metric(name, unit, value)
    metrics.flush_metrics()
