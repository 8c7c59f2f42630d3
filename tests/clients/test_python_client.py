"""A Python client made by openapi-python-client compiles strictly and works against the service."""

import shutil
from pathlib import Path

import pytest

from tests.clients.conftest import DOCUMENT
from tests.processes import RunningService, run

JOURNEY = Path(__file__).parent / "python/journey.py"
# The generator's fixed part (it is the same for any document) hands `object`s to httpx's typed `__exit__`.
MYPY_CONFIGURATION = """
[mypy]
strict = true

[mypy-animal_store_client.client]
disable_error_code = arg-type
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, python_tools: Path) -> Path:
    """A folder with the generated client and a program that uses it."""
    folder = tmp_path_factory.mktemp("python-client")
    printed = run(
        python_tools / "bin/openapi-python-client",
        *("generate", "--path", DOCUMENT, "--output-path", folder / "animal_store_client", "--meta", "none"),
        "--fail-on-warning",
        cwd=folder,
        PATH=f"{python_tools / 'bin'}:/usr/bin:/bin",  # it formats its output with the ruff that it finds there
    )
    assert "WARNING" not in printed.upper()
    shutil.copy(JOURNEY, folder)
    return folder


def test_compiles_strictly(project: Path, python_tools: Path) -> None:
    (project / "mypy.ini").write_text(MYPY_CONFIGURATION)

    run(python_tools / "bin/mypy", "animal_store_client", "journey.py", cwd=project)


def test_every_operation_and_error(
    project: Path, python_tools: Path, service: RunningService, failing_service: str
) -> None:
    printed = run(
        python_tools / "bin/python",
        *("journey.py", service.base_url, failing_service),
        cwd=project,
        API_KEY=service.api_key,
    )

    assert printed == "done\n"
