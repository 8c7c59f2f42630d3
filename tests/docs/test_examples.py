"""The clients' examples, the API page and the worked example of the documents work."""

import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import Popen

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from werkzeug import Request, Response

from tests.support.processes import (
    RunningService,
    environment,
    link_node_modules,
    run,
)
from tests.support.scripted_server import error, forward, reply, serve
from tests.support.waiting import wait_for
from tools import ROOT

TEXT = (ROOT / "docs/clients.md").read_text()
TEXT += (ROOT / "clients/python/README.md").read_text()
EXAMPLES = [block for block in MarkdownIt().parse(TEXT) if " prints " in block.info]
PROGRAMS = {
    "bash": ["bash", "-euo", "pipefail", "-c"],
    "python": [sys.executable, "-c"],
}
# What `make check` and `make test` run, but for templates and for tests that need a checkout.
CHECKS = """
ruff format --check .
ruff check .
mypy
python -m pytest -q -n 2 -m 'not slow' tests/unit tests/contract tests/reliability \
    tests/template tests/docs tests/clients \
    --deselect tests/unit/test_descriptions.py::test_worked_example_applies
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
        # The last page leads elsewhere. (The others have tests of their own for that.)
        if "curl" in example.content:
            response.headers.setdefault("Link", '<http://127.0.0.1:1>; rel="next"')
        return response

    folder = tmp_path / "build/clients"
    folder.mkdir(parents=True)
    link_node_modules(folder)
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
                PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            )

    assert printed in output


def add_animals(service: RunningService, number: int) -> set[int]:
    """Add animals from eight threads; return their ids."""

    def add(_: int) -> int:
        body = {"name": "Rex", "categoryId": 3}
        return int(service.http.post("/pets", json=body).json()["id"])

    with ThreadPoolExecutor(8) as pool:
        return set(pool.map(add, range(number)))


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A folder with the JavaScript examples and their packages."""
    link_node_modules(tmp_path)
    for file in ROOT.glob("docs/examples/*.mjs"):
        shutil.copy(file, tmp_path)
    return tmp_path


def test_new_animals_mjs_prints_each_animal_once_while_others_add_some(
    examples: Path, service: RunningService
) -> None:
    program = (examples / "new-animals.mjs").read_text()
    assert "30_000" in program
    (examples / "new-animals.mjs").write_text(program.replace("30_000", "1_000"))
    output = examples / "output"
    variables = environment(BASE_URL=service.base_url, API_KEY=service.api_key)

    with (
        output.open("w") as out,
        Popen(
            ["node", "new-animals.mjs"], cwd=examples, env=variables, stdout=out
        ) as process,
    ):
        added = add_animals(service, 300)
        wait_for(lambda: added <= {*printed_ids(output)}, 30)
        process.terminate()

    ids = printed_ids(output)
    assert len(ids) == len(set(ids))


def printed_ids(output: Path) -> list[int]:
    return [int(line.split()[0]) for line in output.read_text().splitlines()]


@pytest.mark.parametrize(
    ("retry_after", "at_least_s"),
    [
        ("2", 2),
        ("%a, %d %b %Y %H:%M:%S GMT", 1),  # 2 seconds later, without their fraction
        ("%a %b %e %H:%M:%S %Y", 1),
        ("soon", 0.2),
    ],
)
def test_call_mjs_waits_as_long_as_retry_after_says(
    examples: Path, retry_after: str, at_least_s: float
) -> None:
    times: list[float] = []

    def script(_: Request, number: int) -> Response:
        times.append(time.monotonic())
        date = time.strftime(retry_after, time.gmtime(time.time() + 2))
        return error(429, Retry_After=date) if number == 1 else reply([])

    with serve(script) as server:
        run_javascript(examples, server.base_url, zone="America/New_York")

    assert at_least_s <= times[1] - times[0] < at_least_s + 1.9


def test_call_mjs_sends_the_key_to_no_other_address(examples: Path) -> None:
    foreign = "http://127.0.0.1:1/v1/pets?cursor=x"
    with (
        serve(reply([], Link=f'<{foreign}>; rel="next"')) as server,
        pytest.raises(AssertionError, match="is another address"),
    ):
        run_javascript(examples, server.base_url)


def run_javascript(examples: Path, base_url: str, zone: str = "UTC") -> str:
    """List all animals with `call` of call.mjs."""
    program = """
        import { call } from "./call.mjs";
        let url = `${process.env.BASE_URL}/pets`;
        while (url) ({ next: url } = await call(url));
    """
    command = "node", "--input-type=module", "--eval", program
    return run(*command, cwd=examples, BASE_URL=base_url, API_KEY="key", TZ=zone)


def test_the_page_works(service: RunningService, tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("Chromium is not installed")
    link_node_modules(tmp_path)
    shutil.copy(Path(__file__).with_name("page.mjs"), tmp_path)
    url = f"{service.origin}/docs"
    run("node", "page.mjs", url, chromium, service.api_key, cwd=tmp_path)


def test_worked_example_is_complete(tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    run("git", "clone", "--quiet", ROOT, folder, cwd=ROOT)
    for name in (".venv", ".tools"):
        (folder / name).symlink_to(ROOT / name)
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
