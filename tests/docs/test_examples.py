"""The documents' examples run as they stand, twice, against a service that misbehaves."""

import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from werkzeug import Request, Response

from tests.support.processes import RunningService, link_node_modules, run
from tests.support.scripted_server import error, forward, reply, serve
from tools import ROOT

TEXT = (ROOT / "docs/clients.md").read_text()
README = (ROOT / "clients/python/README.md").read_text()
BLOCKS = MarkdownIt().parse(TEXT + README)
EXAMPLES = [block for block in BLOCKS if " prints " in block.info]
PROGRAMS = {
    "bash": ["bash", "-euo", "pipefail", "-c"],
    "python": [sys.executable, "-c"],
    "javascript": ["node", "--input-type=module", "--eval"],
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.info)
def test_example_survives_a_failure_and_keeps_the_key(
    example: Token, tmp_path: Path, service: RunningService
) -> None:
    language, _, printed = example.info.split(" ", 2)

    def script(request: Request, number: int) -> Response:
        if number == 1 and "tsc" not in example.content:
            return error(503, Retry_After="1")
        response = forward(service.base_url.removesuffix("/v1"), request)
        # The last page leads to another origin. (The Python client's own tests do the same.)
        if language != "python":
            response.headers.setdefault("Link", f'<{trap.base_url}/pets>; rel="next"')
        return response

    folder = tmp_path / "build/clients"
    folder.mkdir(parents=True)
    link_node_modules(folder)
    (folder / "animals.csv").write_text("name,category_id,status\nRex,3,sold\n,1,\n")
    for name in ("docs", "openapi.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    service.http.post("/pets", json={"name": "Rex", "categoryId": 3})
    with serve(reply([])) as trap, serve(script) as server:
        for _ in range(2):
            output = run(
                *PROGRAMS[language],
                example.content,
                cwd=folder,
                BASE_URL=server.base_url,
                API_KEY=service.api_key,
            )

    assert printed in output
    assert trap.received == []
