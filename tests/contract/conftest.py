"""Point the contract suite at a service, and read which cases are expected to fail there.

Both come from the environment, which keeps keys out of the process list: CONTRACT_BASE_URL (ending
in /v1) and CONTRACT_API_KEY; CONTRACT_SECOND_API_KEY for what is scoped to a key; and
CONTRACT_EXPECTED_FAILURES, a YAML file of `pattern of case ids: reason`. Without a base URL the
suite runs against the local service in this process.
"""

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import httpx
import pytest
import yaml

pytest.register_assert_rewrite("tests.contract.client", "tests.contract.seeded_pets")

# After their assertions are rewritten:
from tests.contract.client import Client, connect  # noqa: E402
from tests.contract.seeded_pets import SeededPets, make  # noqa: E402
from tests.support.in_process import Target, service_in_process  # noqa: E402

_HERE = Path(__file__).parent


def case_id(item: pytest.Item) -> str:
    """Name a case: `test_routes.py::test_head[/pets]` is `routes.head./pets`."""
    name = item.path.stem + "." + item.name
    return name.replace("test_", "").replace("[", ".").rstrip("]")


@pytest.hookimpl(tryfirst=True)  # before -k and -m take cases away
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the excused cases to fail; a pattern without a match is an error."""
    path = os.environ.get("CONTRACT_EXPECTED_FAILURES")
    if not path:
        return
    cases = {case_id(item): item for item in items if _HERE in item.path.parents}
    for pattern, reason in (yaml.safe_load(Path(path).read_text()) or {}).items():
        matching = [item for case, item in cases.items() if fnmatchcase(case, pattern)]
        if not matching:
            raise pytest.UsageError(f"{path}: no case is named {pattern}")
        # `{expected: reason}`: nobody has seen this surface yet, so the case may pass as well.
        unseen = isinstance(reason, dict)
        excused = pytest.mark.xfail(
            reason=reason["expected"] if unseen else reason,
            strict=not unseen,
            raises=(AssertionError, httpx.ProtocolError),
        )
        for item in matching:
            item.add_marker(excused)


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The service to test: as given, or one in this process."""
    base_url = os.environ.get("CONTRACT_BASE_URL")
    api_key = os.environ.get("CONTRACT_API_KEY")
    if base_url and api_key:
        try:
            httpx.get(f"{base_url}/pets", timeout=30)
        except httpx.TransportError as error:
            pytest.exit(f"{base_url} does not answer: {error}", returncode=1)
        yield Target(base_url, api_key, os.environ.get("CONTRACT_SECOND_API_KEY"))
    elif base_url or api_key:
        raise pytest.UsageError(
            "CONTRACT_BASE_URL and CONTRACT_API_KEY belong together"
        )
    else:
        with service_in_process(tmp_path_factory.mktemp("service")) as service:
            yield service


@pytest.fixture(scope="session")
def client(target: Target) -> Iterator[Client]:
    """A client with the valid key."""
    with connect(target.base_url, target.api_key, target.transport) as client:
        yield client


@pytest.fixture(scope="session")
def second_client(target: Target) -> Iterator[Client]:
    """A client with another valid key."""
    if not target.second_api_key:
        pytest.skip("needs CONTRACT_SECOND_API_KEY")
    with connect(target.base_url, target.second_api_key, target.transport) as client:
        yield client


@pytest.fixture(scope="session")
def seeded_pets(client: Client) -> SeededPets:
    """A stretch of the list that only this run has written."""
    return make(client)
