"""The service that suites are run against when they are not pointed at another: `make run`'s own, on a free port."""

from collections.abc import Iterator

import pytest

from tests.processes import RunningService, run_service


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service with an empty store, for the whole session."""
    with run_service(tmp_path_factory.mktemp("service") / "data") as service:
        yield service
