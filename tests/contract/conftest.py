"""Point the contract suite at a service, and read which cases are expected to fail there.

Both come from the environment, which keeps the key out of the process list: CONTRACT_BASE_URL
(ending in /v1) and CONTRACT_API_KEY; and CONTRACT_EXPECTED_FAILURES, a YAML file of `part of a
case's id: reason`. Without a base URL the suite runs against the local service in this process,
and the cases for production run a second time behind the firewall.

A case marked `smoke_read_only` runs against production, where nothing that it added could be
removed: it fails if it changes anything.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx2
import pytest
import yaml

from tests.contract.client import Key, check
from tests.contract.seeded_pets import SeededPets, make

BASE_URL = os.environ.get("CONTRACT_BASE_URL")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a case for production behind the firewall too."""
    if BASE_URL or "service" not in metafunc.fixturenames:
        return
    stages = ["staging"]
    if metafunc.definition.get_closest_marker("smoke_read_only"):
        stages.append("production")
    metafunc.parametrize("service", stages, indirect=True, scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the listed cases to fail."""
    path = os.environ.get("CONTRACT_EXPECTED_FAILURES")
    expected = yaml.safe_load(Path(path).read_text()) if path else {}
    for case, reason in expected.items():
        # Where nobody has looked yet, the case may pass as well.
        is_seen = not reason.startswith("not seen yet")
        mark = pytest.mark.xfail(reason=reason, strict=is_seen)
        for item in items:
            if case in item.nodeid:
                item.add_marker(mark)


@pytest.fixture(scope="session")
def local_clients(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Mapping[str, httpx2.Client], str]]:
    """The local service in this process, as each stage, and a valid key."""
    # Imported here, because the suite that is packed with an artifact has no local service.
    from tests.support.in_process import clients_by_stage

    with clients_by_stage(tmp_path_factory.mktemp("service")) as clients:
        yield clients


@pytest.fixture(scope="session")
def service(request: pytest.FixtureRequest) -> Iterator[tuple[httpx2.Client, str]]:
    """The service to test, as given or in this process, and a valid key."""
    if BASE_URL:
        # A cold start and a rehearsal on two cores are slow; a service that hangs is given up.
        with httpx2.Client(base_url=BASE_URL, timeout=30) as client:
            yield client, answering_key(client)
        return
    clients, api_key = request.getfixturevalue("local_clients")
    yield clients[request.param], api_key


def answering_key(client: httpx2.Client) -> str:
    """Return the key that was given; end the run if it is missing, or no service takes it."""
    api_key = os.environ.get("CONTRACT_API_KEY")
    if not api_key:
        pytest.exit("Give a valid key of the service: API_KEY=...", returncode=2)
    try:
        response = client.get("/pets?limit=1", auth=Key(api_key))
    except httpx2.TransportError as error:
        pytest.exit(f"No service answers at {BASE_URL}: {error}", returncode=2)
    if response.status_code == 401:
        pytest.exit(f"{BASE_URL} refuses the key in API_KEY", returncode=2)
    return api_key


@pytest.fixture(scope="session")
def api_key(service: tuple[httpx2.Client, str]) -> str:
    """The valid key."""
    return service[1]


@pytest.fixture
def client(
    service: tuple[httpx2.Client, str], request: pytest.FixtureRequest
) -> httpx2.Client:
    """A client with the valid key, which checks every response."""
    client, api_key = service
    client.auth = Key(api_key)
    checks = [check]
    if request.node.get_closest_marker("smoke_read_only"):
        checks.append(refuse_change)
    client.event_hooks = {"response": checks}
    return client


def refuse_change(response: httpx2.Response) -> None:
    """Fail a case that succeeds with anything but a GET."""
    if response.request.method != "GET" and response.is_success:
        pytest.fail(f"a smoke_read_only case changed something: {response.text}")


@pytest.fixture
def seeded_pets(client: httpx2.Client) -> SeededPets:
    """A stretch of the list that only this run has written."""
    return make(client)
