"""Point the contract suite at a service, and read which cases are expected to fail there.

Both come from the environment, which keeps the key out of the process list: CONTRACT_BASE_URL
(ending in /v1) and CONTRACT_API_KEY; and CONTRACT_EXPECTED_FAILURES, a YAML file of `part of a
case's id: reason`. Without a base URL the suite runs against the local service in this process.

A case marked `smoke_read_only` runs against production, where nothing that it added could be
removed: it uses no fixture that creates, and fails if it changes anything.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import yaml

from tests.contract.client import Client, check
from tests.contract.seeded_pets import SeededPets, make
from tests.support.in_process import Target, service_in_process

_current_case = pytest.StashKey[pytest.Item]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the listed cases to fail."""
    path = os.environ.get("CONTRACT_EXPECTED_FAILURES")
    expected = yaml.safe_load(Path(path).read_text()) if path else {}
    failures = (AssertionError, httpx2.ProtocolError)
    for case, reason in expected.items():
        # Where nobody has looked yet, the case may pass as well.
        is_seen = not reason.startswith("not seen yet")
        mark = pytest.mark.xfail(reason=reason, strict=is_seen, raises=failures)
        for item in items:
            if case in item.nodeid:
                item.add_marker(mark)


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The service to test: as given, or one in this process."""
    base_url = os.environ.get("CONTRACT_BASE_URL")
    if base_url:
        # A cold start and a rehearsal on two cores are slow; what hangs is not waited for.
        with httpx2.Client(timeout=30) as http:
            yield Target(base_url, os.environ["CONTRACT_API_KEY"], http)
    else:
        with service_in_process(tmp_path_factory.mktemp("service")) as service:
            yield service


@pytest.hookimpl(tryfirst=True)  # before the case's fixtures
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember which case sends the requests to come."""
    item.config.stash[_current_case] = item


@pytest.fixture(scope="session")
def client(target: Target, pytestconfig: pytest.Config) -> Client:
    """A client with the valid key; in a read-only case it accepts no success but of a GET."""

    def check_reads_only(response: httpx2.Response) -> None:
        case = pytestconfig.stash[_current_case]
        reads = response.request.method == "GET" or not response.is_success
        if not reads and case.get_closest_marker("smoke_read_only"):
            # Not an AssertionError, which a case that is expected to fail may raise.
            pytest.fail(f"a smoke_read_only case changed something: {response.text}")

    target.http.event_hooks = {"response": [check_reads_only, check]}
    return Client(target.http, target.base_url, target.api_key)


@pytest.fixture(scope="session")
def seeded_pets(client: Client) -> SeededPets:
    """A stretch of the list that only this run has written."""
    return make(client)
