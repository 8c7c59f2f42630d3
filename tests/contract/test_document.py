"""Requests made from `openapi.yaml` by schemathesis: what the document allows is accepted, what it forbids is refused."""

import httpx
import pytest
import requests
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.core.failures import FailureGroup

from tests.contract import conformance
from tests.contract.client import Client

EXAMPLES = 60


@pytest.mark.parametrize("mode", GenerationMode, ids=[mode.value for mode in GenerationMode])
@pytest.mark.parametrize("operation_id", ["listPets", "createPet", "getPet"])
def test_generated(client: Client, operation_id: str, mode: GenerationMode) -> None:
    """No generated request brings about a 5xx, and every answer is one that the document declares for it."""
    operation = conformance.document().find_operation_by_id(operation_id)

    # derandomize: the same requests in every run, so that a failure can be looked at again.
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Case) -> None:
        with requests.Session() as session:
            case.call_and_validate(
                base_url=client.base_url, session=session, headers={"Authorization": f"Bearer {client.api_key}"}
            )

    try:
        send()
    except FailureGroup as failures:
        raise AssertionError(str(failures)) from failures
