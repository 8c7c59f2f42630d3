"""Requests that schemathesis makes from `openapi.yaml`: it says what is accepted and refused."""

from typing import Any

import pytest
import requests
from httpx2 import Client, Headers

from tests.support import openapi


@pytest.fixture(scope="module")
def document() -> Any:
    # Imported here, because the import takes longer than most cases.
    import schemathesis

    document = schemathesis.openapi.from_path(openapi.PATH)
    # The key is the client's (401 has its own tests), and getPet ignores unknown parameters.
    document.config.generation.update(
        with_security_parameters=False, allow_extra_parameters=False
    )
    return document


@openapi.each_operation
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_generated_request_gets_a_declared_response(
    client: Client, document: Any, operation: openapi.Operation, mode: str
) -> None:
    """Send what openapi.yaml allows or forbids; no request gets a 5xx or an undeclared response."""
    from hypothesis import HealthCheck, assume, given, settings
    from schemathesis import Case, GenerationMode
    from schemathesis.specs.openapi import checks

    found = document.find_operation_by_id(operation.id)
    # Every response's own checks are the client's; this one needs to know what was asked.
    check: Any = {
        "positive": checks.positive_data_acceptance,
        "negative": checks.negative_data_rejection,
    }

    # With derandomize, a failure can be looked at again.
    @settings(
        max_examples=20,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=found.as_strategy(generation_mode=GenerationMode(mode)))
    def send_each(case: Case[Any]) -> None:
        body: Any = case.body
        if mode == "positive":
            # Not any string is a cursor, and an Idempotency-Key may have been used.
            case.query.pop("cursor", None)
            case.headers.pop("Idempotency-Key", None)
            if isinstance(body, dict):  # with whichever members this operation has
                # `1.0` is not an integer to us, and a byte order mark is not a name.
                assume(not any(isinstance(value, float) for value in body.values()))
                assume(body.get("name", "x").strip("\ufeff"))
        if case.path_parameters and case.method != "GET":
            # Changes nothing of another test's.
            case.path_parameters = dict.fromkeys(case.path_parameters, 2**63 - 1)
        transport = case.as_transport_kwargs(base_url=str(client.base_url))
        sent: Any = requests.Request(**transport).prepare()
        response = client.request(
            case.method,
            sent.url,
            headers=Headers(sent.headers, encoding="utf-8"),
            content=sent.body,
        )
        case.validate_response(response, checks=[check[mode]])

    send_each()
