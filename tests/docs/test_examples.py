"""The examples of the documentation run as they stand in it, against a live service.

A fence whose info string says `example` is run; `setup` marks what a reader does once, and the test in its own way.
"""

import os
import shutil
from pathlib import Path

import pytest

from tests.docs.markdown import Fence, fences
from tests.processes import RunningService, installed, run, skip_without_node
from tools import ROOT

FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCES = [fence for file in FILES if file.exists() for fence in fences(file)]
EXAMPLES = [fence for fence in FENCES if "example" in fence.marks]
# What an example must print; the others must only succeed.
PRINTED = {
    "curl --fail-with-body --silent --show-error --retry": '"name":"Rex","categoryId":3,"status":"available"}',
    "--include": 'rel="next"',
    'while [ -n "$url" ]': "][",  # the end of a page and the beginning of the next
    "http --check-status": '"name":"Mia"',
    "import requests": "are available",
    "import { parse": "9007199254740993n\nRex is listed",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a reader would be: a folder with the project's files that the examples name."""
    for name in ("openapi.yaml", "tools"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "docs/examples/bigint-types.mjs", tmp_path)
    return tmp_path


def name(fence: Fence) -> str:
    return f"{fence.file}:{fence.line}"


@pytest.fixture(scope="module")
def stocked(service: RunningService) -> RunningService:
    """The service, with more animals than fit on the examples' pages."""
    service.tool("seed", "--count", "10")
    return service


@pytest.mark.parametrize("fence", EXAMPLES, ids=name)
def test_example(fence: Fence, folder: Path, stocked: RunningService) -> None:
    python = installed("clients")
    if fence.language == "javascript" or fence.code.startswith(("node ", "npx ")):
        skip_without_node()
        (folder / "node_modules").symlink_to(installed("clients-npm") / "node_modules")
    if fence.code.lstrip().startswith("curl") and not shutil.which("curl"):
        pytest.skip("curl is not installed")
    commands: dict[str, list[str | Path]] = {
        "bash": ["bash", "-euo", "pipefail", "-c", fence.code],
        "python": [python / "bin/python", "-c", fence.code],
        "javascript": ["node", "--input-type=module", "--eval", fence.code],
    }

    printed = run(
        *commands[fence.language],
        cwd=folder,
        BASE_URL=stocked.base_url,
        API_KEY=stocked.api_key,
        PATH=f"{python / 'bin'}:{os.environ['PATH']}",
    )

    for beginning, expected in PRINTED.items():
        if beginning in fence.code:
            assert expected in printed


def test_no_example_of_the_clients_is_left_out() -> None:
    assert [
        name(fence) for fence in FENCES if fence.file == "clients.md" and not fence.marks & {"example", "setup"}
    ] == []
    assert {fence.language for fence in EXAMPLES} >= {"bash", "python", "javascript"}
    for beginning in PRINTED:
        assert any(beginning in fence.code for fence in EXAMPLES), beginning
