"""The service that suites call over HTTP, and which tests are slow."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.processes import RunningService, run_service

# What takes long, or needs Node.js, a browser, Java or a build. Single tests that do are marked where they are.
SLOW = (
    *("clients/", "packaging/", "reliability/"),
    *("docs/test_docs_page.py", "docs/test_examples.py", "local/test_dynamodb_engine.py"),
)

settings.register_profile("busy machine", deadline=None)  # where no example's time means anything
settings.load_profile("busy machine")
_KEY = re.compile(r"(animal_(?:live|test))_[0-9A-Za-z]{38}")


def pytest_make_parametrize_id(val: object) -> str | None:
    """Keep keys out of the names of tests: many are random, and each worker needs the same names."""
    return _KEY.sub(r"\1_key", val) if isinstance(val, str) and _KEY.search(val) else None


@pytest.hookimpl(tryfirst=True)  # before -m takes tests away
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests."""
    for item in items:
        if item.path.relative_to(Path(__file__).parent).as_posix().startswith(SLOW):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """`make run` with an empty store, for the whole session."""
    with run_service(tmp_path_factory.mktemp("service") / "data") as service:
        yield service
