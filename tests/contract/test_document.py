"""Requests that schemathesis makes from `openapi.yaml`: it says what is accepted and refused."""

from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks

from tests.contract.client import Client
from tests.support import openapi
from tools import ROOT

DOCUMENT: Any = schemathesis.openapi.from_path(ROOT / "openapi.yaml")
# The key is the client's (401 has its own tests), and getPet ignores unknown parameters.
DOCUMENT.config.generation.update(
    with_security_parameters=False, allow_extra_parameters=False
)
# Every response's own checks are the client's; these need to know what was asked.
CHECKS: Any = [checks.negative_data_rejection, checks.positive_data_acceptance]


def make_valid(case: Case[Any]) -> None:
    """Take away what looks valid to JSON Schema alone.

    Not any string is a cursor, an Idempotency-Key may have been used, `1.0` is not an integer to
    us, and a byte order mark is not a name.
    """
    case.query.pop("cursor", None)
    case.headers.pop("Idempotency-Key", None)
    body: Any = case.body
    if isinstance(body, dict):
        # Whichever members this operation has.
        assume(type(body.get("categoryId", 0)) is int)
        assume(body.get("name", "x").strip("\ufeff"))


@openapi.each_operation
@pytest.mark.parametrize("mode", [*GenerationMode], ids=lambda mode: mode.value)
@pytest.mark.parametrize("count", [10, pytest.param(40, marks=pytest.mark.slow)])
def test_generated(
    client: Client, operation: openapi.Operation, mode: GenerationMode, count: int
) -> None:
    """Send what openapi.yaml allows or forbids; no request gets a 5xx or an undeclared response."""
    found = DOCUMENT.find_operation_by_id(operation.id)

    # derandomize: the same requests in every run, so that a failure can be looked at again.
    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=found.as_strategy(generation_mode=mode))
    def send_each(case: Case[Any]) -> None:
        if mode is GenerationMode.POSITIVE:
            make_valid(case)
        if case.path_parameters and case.method != "GET":
            case.path_parameters["petId"] = 2**63 - 1  # changes no other test's animal
        transport = case.as_transport_kwargs(base_url=client.base_url)
        sent: Any = requests.Request(**transport).prepare()
        headers = list(sent.headers.items())
        response = client.request(case.method, sent.url, headers, sent.body)
        case.validate_response(response, checks=CHECKS)

    try:
        send_each()
    except FailureGroup as failures:
        raise AssertionError(str(failures)) from failures
