"""TypeScript types made by openapi-typescript compile strictly and work, with openapi-fetch, against the service."""

import shutil
from pathlib import Path

import pytest

from tests.clients.conftest import DOCUMENT
from tests.processes import RunningService, run
from tools import ROOT

PROGRAMS = Path(__file__).parent / "typescript"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, node_tools: Path) -> Path:
    """A folder with the generated types and programs that use them, compiled."""
    folder = shutil.copytree(PROGRAMS, tmp_path_factory.mktemp("typescript") / "client")
    (folder / "node_modules").symlink_to(node_tools / "node_modules")
    run("node_modules/.bin/openapi-typescript", DOCUMENT, "--output", "animal-store.ts", cwd=folder)
    shutil.copy(ROOT / "docs/examples/bigint-types.mjs", folder)
    run("node", "bigint-types.mjs", DOCUMENT, "animal-store-bigint.ts", cwd=folder)
    run("node_modules/.bin/tsc", "--project", ".", cwd=folder)
    return folder


def test_every_operation_and_error(project: Path, service: RunningService, failing_service: str) -> None:
    printed = run(
        *("node", "compiled/journey.js", service.base_url, failing_service), cwd=project, API_KEY=service.api_key
    )

    assert printed == "done\n"


def test_integers_beyond_those_of_a_double(project: Path, service: RunningService) -> None:
    printed = run("node", "compiled/int64.js", service.base_url, cwd=project, API_KEY=service.api_key)

    assert printed == "done\n"


def test_the_compiler_is_strict(project: Path) -> None:
    wrong = project / "wrong.ts"
    wrong.write_text(
        'import type { components } from "./animal-store.js";\n'
        'export const pet: components["schemas"]["NewPet"] = { name: "Rex", categoryId: 1, status: "lost" };\n'
    )

    with pytest.raises(AssertionError, match=r"wrong\.ts.*'\"lost\"' is not assignable"):
        run("node_modules/.bin/tsc", "--project", ".", "--noEmit", cwd=project)

    wrong.unlink()
