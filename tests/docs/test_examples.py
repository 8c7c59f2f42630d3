"""The examples of docs/clients.md run as they stand there, against services that misbehave."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from werkzeug import Request, Response

from tests.support.processes import RunningService, link_node_modules
from tests.support.scripted_server import error, forward, reply, serve
from tools import ROOT

DOCUMENT = MarkdownIt().parse((ROOT / "docs/clients.md").read_text())
EXAMPLES = [
    (token.info.split()[0], token.content)
    for token in DOCUMENT
    if token.info.endswith(" example")
]
PRINTED = [
    "category_id=3, status='available')\nRex is listed\n400 invalid_request name: must have",
    "animals in the mirror",
    "row 2: 400 invalid_request: name: must have",
    '"name":"Rex","categoryId":3,"status":"available"}',
    'rel="next"',
    "][",  # the end of a page and the beginning of the next
    "9007199254740993n\nRex is listed",
    '{"id"',
]
INTERPRETERS = {
    "bash": ["bash", "-euo", "pipefail", "-c"],
    "python": [sys.executable, "-c"],
    "javascript": ["node", "--input-type=module", "--eval"],
}


def run_example(
    language: str, code: str, folder: Path, base_url: str, api_key: str = "key"
) -> subprocess.CompletedProcess[str]:
    """Run an example where the setup of docs/clients.md leaves a reader: in build/clients."""
    scratch = folder / "build/clients"
    if not scratch.exists():
        (folder / ".venv").symlink_to(ROOT / ".venv")
        scratch.mkdir(parents=True)
        rows = "name,category_id,status\nRex,3,available\n,1,sold\nMia,1,\n"
        (scratch / "animals.csv").write_text(rows)
    if language == "javascript":
        link_node_modules(scratch)
    return subprocess.run(
        [*INTERPRETERS[language], code],
        cwd=scratch,
        env={**os.environ, "BASE_URL": base_url, "API_KEY": api_key},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
        timeout=50,
    )


@pytest.mark.parametrize(
    ("example", "printed"), [*zip(EXAMPLES, PRINTED, strict=True)], ids=PRINTED
)
def test_example_survives_failures_and_keeps_the_key(
    example: tuple[str, str], printed: str, tmp_path: Path, service: RunningService
) -> None:
    language, code = example

    def script(request: Request, number: int) -> Response:
        if number <= 2:
            return error([503, 429][number - 1], Retry_After="1")
        response = forward(service.base_url.removesuffix("/v1"), request)
        # The last page leads to another origin. (The tests of the Python client do the same.)
        if language != "python":
            response.headers.setdefault("Link", f'<{trap.base_url}/pets>; rel="next"')
        return response

    # More animals than fit on the examples' pages.
    for number in range(10):
        service.http.post("/pets", json={"name": f"Pet {number}", "categoryId": 1})
    with serve(lambda *_: reply([])) as trap, serve(script) as server:
        done = run_example(language, code, tmp_path, server.base_url, service.api_key)

    assert printed in done.stdout
    assert "another" in done.stdout or "next" not in code
    assert trap.received == []


def test_the_mirror_finds_an_animal_that_appears_late(tmp_path: Path) -> None:
    ids = [1, 2]

    def script(request: Request, _: int) -> Response:
        left = [id_ for id_ in ids if id_ > int(request.args.get("cursor", 0))]
        page = [{"id": id_, "name": "Rex", "categoryId": 3} for id_ in left[:2]]
        link = f'<?cursor={left[1]}>; rel="next"' if len(left) > 2 else "<>"
        return reply(page, Link=link)

    code = EXAMPLES[1][1].replace(" + 30 ", " + 0.1 ")
    with serve(script) as server:
        run_example("python", code, tmp_path, server.base_url)
        ids[2:] = [3, 5, 6]  # and 4 is not stored yet
        run_example("python", code, tmp_path, server.base_url)
        ids[3:] = [4, 5, 6]
        done = run_example("python", code, tmp_path, server.base_url)
    assert done.stdout == "6 animals in the mirror\n"


def test_an_import_that_was_killed_is_run_again(
    tmp_path: Path, service: RunningService
) -> None:
    code = EXAMPLES[2][1]
    killed = code.replace("    try:", "    if number == 3: os._exit(9)\n    try:")
    target = tmp_path, service.base_url, service.api_key

    assert run_example("python", killed, *target).returncode == 9
    run_example("python", code, *target)

    done = run_example("python", code, *target)
    assert "2 animals, 2 of them added before" in done.stdout
