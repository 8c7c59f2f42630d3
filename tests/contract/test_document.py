"""Requests that schemathesis makes from `openapi.yaml`: what it allows is accepted, what it forbids is refused."""

from functools import cache
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import FailureGroup

from tests.contract.client import Client
from tests.support import openapi
from tools import ROOT

# Every response's own checks are the client's; these need to know what was asked.
CHECKED = ["negative_data_rejection", "positive_data_acceptance", "missing_required_header"]
# derandomize: the same requests in every run, so that a failure can be looked at again.
SETTINGS = settings(
    max_examples=40,
    derandomize=True,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


@cache
def document() -> Any:
    """Load the document, once."""
    load_all_checks()
    loaded = schemathesis.openapi.from_path(ROOT / "openapi.yaml")
    # The key is the client's (401 has its own tests), and getPet ignores unknown parameters.
    loaded.config.generation.update(with_security_parameters=False, allow_extra_parameters=False)
    return loaded


def is_expressible(case: Case[Any]) -> bool:
    """Leave out what looks valid to JSON Schema alone.

    Not any string is a cursor, `1.0` is an integer to it and not to us, and an Idempotency-Key may have been used.
    """
    if case.meta is None or case.meta.generation.mode is GenerationMode.NEGATIVE:
        return True
    body = case.body if isinstance(case.body, dict) else {}
    return not (
        "cursor" in (case.query or {})
        or "Idempotency-Key" in (case.headers or {})
        or isinstance(body.get("categoryId"), float)
    )


@pytest.mark.parametrize("mode", GenerationMode, ids=[mode.value for mode in GenerationMode])
@pytest.mark.parametrize("operation_id", [operation.id for operation in openapi.operations()])
def test_generated(client: Client, operation_id: str, mode: GenerationMode) -> None:
    """No generated request brings about a 5xx, and every response is one that the document declares for it."""
    operation = document().find_operation_by_id(operation_id)

    @SETTINGS
    @given(case=operation.as_strategy(generation_mode=mode).filter(is_expressible))
    def send(case: Case[Any]) -> None:
        sent: Any = requests.Request(**case.as_transport_kwargs(base_url=client.base_url)).prepare()
        headers = [
            (name, value) for name, value in sent.headers.items() if name != "Content-Length"
        ]
        content = sent.body.encode() if isinstance(sent.body, str) else sent.body
        checks: Any = CHECKS.get_by_names(CHECKED)
        case.validate_response(
            client.request(case.method, sent.url, headers, content), checks=checks
        )

    try:
        send()
    except FailureGroup as failures:
        raise AssertionError(str(failures)) from failures
