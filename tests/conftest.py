"""The environment of all tests, and the service that suites call over HTTP."""

import os
import time
from collections.abc import Iterator

import pytest

from tests.support.processes import RunningService, run_service

# No proxy stands between a test and its service.
os.environ |= {"no_proxy": "127.0.0.1,localhost", "NO_PROXY": "127.0.0.1,localhost"}
# Help texts wrap at this width. In this time zone a local time differs from UTC.
os.environ |= {"COLUMNS": "80", "TZ": "Asia/Kathmandu"}
time.tzset()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """`make run` with an empty store, for the whole session."""
    with run_service(tmp_path_factory.mktemp("service")) as service:
        yield service
