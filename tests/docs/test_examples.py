"""The examples of docs/clients.md run as they stand there, against services that misbehave."""

import os
import subprocess
import sys
import time
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
    '"name":"Rex","categoryId":3,"status":"available"}',
    'rel="next"',
    "][",  # the end of a page and the beginning of the next
    "9007199254740993n\nRex is listed",
    "50 animals: ",
    '{"id"',
]
INTERPRETERS = {
    "bash": ["bash", "-euo", "pipefail", "-c"],
    "python": [sys.executable, "-c"],
    "javascript": ["node", "--input-type=module", "--eval"],
}


def run_example(
    language: str, code: str, folder: Path, base_url: str, api_key: str
) -> subprocess.CompletedProcess[str]:
    """Run an example where the setup of docs/clients.md leaves a reader: in build/clients."""
    (folder / ".venv").symlink_to(ROOT / ".venv")
    scratch = folder / "build/clients"
    scratch.mkdir(parents=True)
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
    ("language", "code", "printed"),
    [(*example, text) for example, text in zip(EXAMPLES, PRINTED, strict=True)],
    ids=PRINTED,
)
def test_example_survives_failures_and_keeps_the_key(
    language: str, code: str, printed: str, tmp_path: Path, service: RunningService
) -> None:
    def script(request: Request, number: int) -> Response:
        if number <= 2:
            return error([503, 429][number - 1], Retry_After="1")
        if number == 3 and language == "javascript":
            time.sleep(60)  # longer than a reader would wait: only a timeout goes on
        response = forward(service.base_url.removesuffix("/v1"), request)
        # The last page leads to another origin. (The tests of the Python client do the same.)
        if language != "python":
            response.headers.setdefault("Link", f'<{trap.base_url}/pets>; rel="next"')
        return response

    # More animals than fit on the examples' pages.
    service.tool("seed", "--count", "10")
    code = code.replace("timeout(35_000)", "timeout(5_000)")
    with serve(lambda *_: reply([])) as trap, serve(script) as server:
        done = run_example(language, code, tmp_path, server.base_url, service.api_key)

    assert printed in done.stdout
    assert "another" in done.stdout or "next" not in code
    assert trap.received == []
