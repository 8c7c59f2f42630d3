"""The service that suites call over HTTP, and which tests are slow."""

import os
import time
from collections.abc import Iterator

import pytest

from tests.support.processes import RunningService, run_service

# What this machine has set must not matter: services on it are asked directly, help is as wide
# as it is compared, and a time that is not UTC is noticed.
os.environ |= {"no_proxy": "127.0.0.1,localhost", "NO_PROXY": "127.0.0.1,localhost"}
os.environ |= {"COLUMNS": "80", "TZ": "Asia/Kathmandu"}
time.tzset()

# What takes long, or needs Node.js, a browser, Java or a build. Single tests that do are marked
# where they are.
SLOW = (
    "docs/test_examples.py",
    "local/test_containers.py",
    "reliability/test_model.py",
    "reliability/test_repair.py",
)


@pytest.hookimpl(tryfirst=True)  # before -m takes tests away
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests."""
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(SLOW):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """`make run` with an empty store, for the whole session."""
    with run_service(tmp_path_factory.mktemp("service") / "data") as service:
        yield service
