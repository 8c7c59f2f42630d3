"""The service under test, and the cases that are expected to fail there.

Environment variables choose both:

- CONTRACT_BASE_URL is the service's base URL, which ends in /v1. Without it, the suite starts the
  local service, and tests that.
- CONTRACT_API_KEY is a valid key.
- CONTRACT_EXPECTED_FAILURES is a YAML file with entries `part of a case's id: reason`.

Production runs only the cases marked `smoke_read_only`, because no operation can remove an animal.
These cases fail if they change anything.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from httpx2 import Client, HTTPError, Request, Response

from tests.contract.client import check

BASE_URL = os.environ.get("CONTRACT_BASE_URL", "")
Service = tuple[Client, str]
"""A client of the service under test, and a valid key."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases that are expected to fail."""
    path = os.environ.get("CONTRACT_EXPECTED_FAILURES")
    expected_failures = yaml.safe_load(Path(path).read_text()) if path else {}
    for case, reason in expected_failures.items():
        # If nobody has seen the case fail, it may pass.
        must_fail = not reason.startswith("not seen yet")
        mark = pytest.mark.xfail(reason=reason, strict=must_fail)
        for item in items:
            if case in item.nodeid:
                item.add_marker(mark)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service under test."""
    if BASE_URL:
        # Cold starts and emulators are slow.
        with Client(base_url=BASE_URL, timeout=30) as client:
            yield client, accepted_key(client)
        return
    # Import it here: the suite in an artifact has no local service.
    from tests.support.processes import run_service

    with run_service(tmp_path_factory.mktemp("service")) as local_service:
        del local_service.http.headers["Authorization"]  # `client` adds it
        yield local_service.http, local_service.api_key


def accepted_key(client: Client) -> str:
    """Return CONTRACT_API_KEY; stop the suite if the service does not accept it."""
    api_key = os.environ.get("CONTRACT_API_KEY", "")
    headers = {"Authorization": f"Bearer {api_key}"}
    try:
        client.get("/pets?limit=1", headers=headers).raise_for_status()
    except HTTPError as error:
        pytest.exit(f"GET {BASE_URL}/pets with API_KEY failed: {error}", returncode=2)
    return api_key


@pytest.fixture(scope="session")
def api_key(service: Service) -> str:
    """A valid key."""
    return service[1]


@pytest.fixture
def client(service: Service, request: pytest.FixtureRequest) -> Client:
    """A client that sends the valid key, and checks every response."""
    client, api_key = service

    def add_key(request: Request) -> Request:
        request.headers.setdefault("Authorization", f"Bearer {api_key}")
        return request

    client.auth = add_key
    checks = [check]
    if request.node.get_closest_marker("smoke_read_only"):
        checks.append(refuse_change)
    client.event_hooks = {"response": checks}
    return client


def refuse_change(response: Response) -> None:
    """Fail if a request other than a GET succeeds."""
    if response.request.method != "GET" and response.is_success:
        pytest.fail(f"a smoke_read_only case changed something: {response.text}")
