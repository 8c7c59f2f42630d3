"""The examples of the documents run as they stand there, against services that misbehave."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from werkzeug import Request, Response

from tests.support.markdown import Fence, fences
from tests.support.processes import RunningService, link_node_modules
from tests.support.scripted_server import error, forward, reply, serve
from tools import ROOT

FILES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
FENCES = [fence for file in FILES for fence in fences(file)]
EXAMPLES = [fence for fence in FENCES if fence.mark == "example"]
# What an example must print.
PRINTED = {
    "import os": [
        "category_id=3",
        "Rex is listed",
        "400 invalid_request name: must have",
    ],
    "rex-1": ['"name":"Rex","categoryId":3,"status":"available"}'],
    "--include": ['rel="next"'],
    'while [ -n "$url" ]': ["]["],  # the end of a page and the beginning of the next
    "import { parse": ["9007199254740993n\nRex is listed"],
    "animal-store seed": ["50 of 50 animals"],
    "import json, os": ['{"id"'],
}
PAGING = [
    fence for fence in EXAMPLES if "next" in fence.code or "client.pets" in fence.code
]
INTERPRETERS = {
    "bash": ["bash", "-euo", "pipefail", "-c"],
    "python": [sys.executable, "-c"],
    "javascript": ["node", "--input-type=module", "--eval"],
}


def run_example(
    fence: Fence, folder: Path, base_url: str, api_key: str = "key"
) -> subprocess.CompletedProcess[str]:
    """Run an example where the setup of docs/clients.md leaves a reader: in build/clients."""
    for name in (".venv", "clients", "docs", "openapi.yaml"):
        (folder / name).symlink_to(ROOT / name)
    scratch = folder / "build/clients"
    scratch.mkdir(parents=True)
    if fence.language == "javascript":
        link_node_modules(scratch)
    command, variables = (
        INTERPRETERS[fence.language],
        {**os.environ, "BASE_URL": base_url, "API_KEY": api_key},
    )
    return subprocess.run(
        [*command, fence.code],
        check=False,
        cwd=scratch,
        env=variables,
        capture_output=True,
        text=True,
        timeout=50,
    )


@pytest.mark.parametrize("fence", EXAMPLES, ids=lambda fence: fence.name)
def test_example_survives_failures_and_a_stall(
    fence: Fence, tmp_path: Path, service: RunningService
) -> None:
    if fence.language == "javascript":
        assert "35_000" in fence.code
        fence = fence._replace(code=fence.code.replace("35_000", "5_000"))

    def script(request: Request, number: int) -> Response:
        if number <= 2:
            return error([503, 429][number - 1], Retry_After="1")
        if number == 3 and fence.language == "javascript":
            time.sleep(60)  # longer than a reader would wait: only a timeout goes on
        return forward(service.base_url.removesuffix("/v1"), request)

    # More animals than fit on the examples' pages.
    service.tool("seed", "--count", "10")
    with serve(script) as server:
        done = run_example(fence, tmp_path, server.base_url, service.api_key)

    assert done.returncode == 0, done.stderr
    assert len(server.received) > 2
    (expected,) = (
        texts for beginning, texts in PRINTED.items() if beginning in fence.code
    )
    assert [text for text in expected if text not in done.stdout] == []


@pytest.mark.parametrize("fence", PAGING, ids=lambda fence: fence.name)
def test_example_sends_the_key_to_no_other_origin(fence: Fence, tmp_path: Path) -> None:
    pet = {"id": 1, "name": "Rex", "categoryId": 1}

    def liar(request: Request, _: int) -> Response:
        return (
            reply(pet, 201)
            if request.method == "POST"
            else reply([pet], Link=f'<{trap.base_url}/pets>; rel="next"')
        )

    with serve(lambda *_: reply([])) as trap, serve(liar) as server:
        done = run_example(fence, tmp_path, server.base_url)

    assert trap.received == []
    assert "another" in done.stderr


def test_no_example_of_the_clients_is_left_out() -> None:
    marks = [
        (fence.name, fence.mark.partition(":")[0])
        for fence in FENCES
        if fence.name.startswith("clients.md")
    ]

    assert [
        name for name, mark in marks if mark not in {"example", "setup", "generates"}
    ] == []
    assert len(PAGING) == 4
