"""What the documents show works: the clients' examples, the API page, the worked examples."""

import shutil
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from werkzeug import Request, Response

from tests.support.processes import RunningService, link_node_modules, run
from tests.support.scripted_server import error, forward, serve
from tools import ROOT
from tools.packaging.build import committed

TEXT = (ROOT / "docs/clients.md").read_text()
TEXT += (ROOT / "clients/python/README.md").read_text()
EXAMPLES = [block for block in MarkdownIt().parse(TEXT) if " prints " in block.info]
PROGRAMS = {
    "bash": ["bash", "-euo", "pipefail", "-c"],
    "python": [sys.executable, "-c"],
    "javascript": ["node", "--input-type=module", "--eval"],
}
# What `make check` and `make test` run, but for templates and for tests that need a checkout.
CHECKS = """
ruff format --check .
ruff check .
mypy
python -m pytest -q -n 2 -m 'not slow' tests/unit tests/contract tests/reliability \
    tests/template tests/docs tests/clients
"""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.info)
def test_example_survives_a_failure_and_keeps_the_key(
    example: Token, tmp_path: Path, service: RunningService
) -> None:
    language, _, printed = example.info.split(" ", 2)

    def script(request: Request, number: int) -> Response:
        if number == 1 and "tsc" not in example.content:
            return error(503, Retry_After="1")
        response = forward(service.origin, request)
        # The last page leads elsewhere. (The Python client's own tests do the same.)
        if language != "python":
            response.headers.setdefault("Link", '<http://127.0.0.1:1>; rel="next"')
        return response

    folder = tmp_path / "build/clients"
    folder.mkdir(parents=True)
    link_node_modules(folder)
    (folder / "animals.csv").write_text("name,category_id,status\nRex,3,sold\n,1,\n")
    for name in ("docs", "openapi.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    service.http.post("/pets", json={"name": "Rex", "categoryId": 3})
    with serve(script) as server:
        for _ in range(2):
            output = run(
                *PROGRAMS[language],
                example.content,
                cwd=folder,
                BASE_URL=server.base_url,
                API_KEY=service.api_key,
            )

    assert printed in output


def test_the_page_works(service: RunningService, tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("Chromium is not installed")
    link_node_modules(tmp_path)
    shutil.copy(Path(__file__).with_name("page.mjs"), tmp_path)
    url = f"{service.origin}/docs"
    run("node", "page.mjs", url, chromium, service.api_key, cwd=tmp_path)


def test_worked_example_is_complete() -> None:
    with committed() as folder:
        # Tests search what git tracks.
        patch = "docs/examples/color.patch"
        run("git", "apply", "-C1", "--index", patch, cwd=folder)
        run(
            "bash",
            "-euc",
            CHECKS,
            cwd=folder,
            timeout_s=900,
            PATH=f"{folder}/.venv/bin:/usr/bin:/bin",
            PYTHONPATH=f"{folder}:{folder}/clients/python/src",
        )
