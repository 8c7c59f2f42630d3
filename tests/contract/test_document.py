"""Requests that schemathesis makes from `openapi.yaml`: it says what is accepted and refused."""

from functools import cache
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import FailureGroup

from tests.contract.client import Client
from tests.support import openapi
from tools import ROOT

# Every response's own checks are the client's; these need to know what was asked.
CHECKED = [
    "negative_data_rejection",
    "positive_data_acceptance",
    "missing_required_header",
]


@cache
def document() -> Any:
    """Load the document, once."""
    load_all_checks()
    loaded = schemathesis.openapi.from_path(ROOT / "openapi.yaml")
    # The key is the client's (401 has its own tests), and getPet ignores unknown parameters.
    loaded.config.generation.update(
        with_security_parameters=False, allow_extra_parameters=False
    )
    return loaded


def is_expressible(case: Case[Any]) -> bool:
    """Leave out what looks valid to JSON Schema alone.

    Not any string is a cursor, a byte order mark is not a name, `1.0` is not an integer to us,
    and an Idempotency-Key may have been used.
    """
    if case.meta is None or case.meta.generation.mode is GenerationMode.NEGATIVE:
        return True
    body: dict[str, Any] = case.body if isinstance(case.body, dict) else {}
    return not (
        "cursor" in (case.query or {})
        or "Idempotency-Key" in (case.headers or {})
        or isinstance(body.get("categoryId"), float)
        or not body.get("name", "x").strip("\ufeff")
    )


def send(client: Client, case: Case[Any]) -> None:
    """Send a generated request, and compare the response with what the document promises."""
    transport = case.as_transport_kwargs(base_url=client.base_url)
    sent: Any = requests.Request(**transport).prepare()
    sent.headers.pop("Content-Length", None)
    content = sent.body.encode() if isinstance(sent.body, str) else sent.body
    response = client.request(case.method, sent.url, [*sent.headers.items()], content)
    checks: Any = CHECKS.get_by_names(CHECKED)
    case.validate_response(response, checks=checks)


@pytest.mark.parametrize("mode", ["positive", "negative"])
@openapi.each_operation
def test_generated(client: Client, operation: openapi.Operation, mode: str) -> None:
    """Send what openapi.yaml allows or forbids; no request gets a 5xx or an undeclared response."""
    found = document().find_operation_by_id(operation.id)
    cases = found.as_strategy(generation_mode=GenerationMode(mode)).filter(
        is_expressible
    )

    # derandomize: the same requests in every run, so that a failure can be looked at again.
    @settings(
        max_examples=40,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def send_each(case: Case[Any]) -> None:
        send(client, case)

    try:
        send_each()
    except FailureGroup as failures:
        raise AssertionError(str(failures)) from failures
