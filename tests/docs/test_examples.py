"""The clients' examples run, and the API page works."""

import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from animal_store_client import Client
from markdown_it import MarkdownIt
from markdown_it.token import Token
from werkzeug import Request, Response

from tests.support.processes import (
    RunningService,
    link_node_modules,
    require,
    run,
    skip,
)
from tests.support.scripted_server import page, reply, rounds_with_a_late_animal, serve
from tools import ROOT

pytestmark = pytest.mark.slow

CLIENT_GUIDES = (ROOT / "docs/clients.md").read_text()
CLIENT_GUIDES += (ROOT / "clients/python/README.md").read_text()
EXAMPLES = [
    block for block in MarkdownIt().parse(CLIENT_GUIDES) if " prints " in block.info
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.info)
def test_example_run_twice_prints_what_its_guide_says(
    example: Token, tmp_path: Path, service: RunningService
) -> None:
    folder = tmp_path / "build/clients"
    folder.mkdir(parents=True)
    link_node_modules(folder)
    for name in ("docs", "openapi.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    with Client(service.base_url, service.api_key) as client:
        client.create("Rex", 3, "available")  # some examples only list animals
    language, _, printed = example.info.split(" ", 2)
    for _ in range(2):
        output = run(
            *(language, "-c", example.content),
            cwd=folder,
            BASE_URL=service.base_url,
            API_KEY=service.api_key,
            PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        )
        assert printed in output


def run_example(folder: Path, name: str, base_url: str) -> None:
    """Run a JavaScript example on a server; its pauses last 30 ms, not 30 s."""
    link_node_modules(folder)
    for file in ROOT.glob("docs/examples/*.mjs"):
        program = file.read_text().replace("30_000", "30")
        (folder / file.name).write_text(program)
    run("node", name, cwd=folder, BASE_URL=base_url, API_KEY="key")


def test_new_animals_mjs_prints_each_animal_once(tmp_path: Path) -> None:
    responses = [*rounds_with_a_late_animal(), reply({}, 401)]
    with (
        serve(responses) as server,
        pytest.raises(AssertionError, match="401") as failure,
    ):
        run_example(tmp_path, "new-animals.mjs", server.base_url)

    assert str(failure.value).startswith("1 Rex\n3 Rex\n4 Rex\n2 Rex\n5 Rex\n")
    cursors = [request.args.get("cursor") for request in server.received]
    assert cursors == [None, "1", None, "1", "3", "1", "3", "3"]


@pytest.mark.parametrize(
    "retry_after", ["2", "%a, %d %b %Y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"]
)
def test_animals_mjs_obeys_retry_after_and_lists_all_pages(
    tmp_path: Path, retry_after: str
) -> None:
    times: list[float] = []

    def throttle_once(_: Request, number: int) -> Response:
        times.append(time.time())
        # A date has no fraction of a second, so this one is 2 to 3 seconds away.
        header = time.strftime(retry_after, time.gmtime(times[0] + 3))
        throttled = reply({}, 429, {"Retry-After": header})
        return [throttled, reply({}), page(1, next_cursor=1), page(2)][number - 1]

    with serve(throttle_once) as server:
        # The base URL may have a slash at its end, and its scheme capital letters.
        base_url = f"{server.base_url}/".replace("http", "HTTP")
        run_example(tmp_path, "animals.mjs", base_url)

    assert times[1] - times[0] >= 2
    assert server.received[3].full_path == "/v1/pets?cursor=1"


def test_animals_mjs_sends_the_key_to_no_other_address(tmp_path: Path) -> None:
    link = {"Link": '<http://127.0.0.1:1/v1/pets?cursor=x>; rel="next"'}
    with (
        serve(reply([], 200, link)) as server,
        pytest.raises(AssertionError, match="is not at BASE_URL"),
    ):
        run_example(tmp_path, "animals.mjs", server.base_url)


def test_curl_example_fails_when_a_page_is_missing(tmp_path: Path) -> None:
    require("curl")
    [example] = [block.content for block in EXAMPLES if "list_animals" in block.content]
    with (
        serve([page(1, next_cursor=1), reply({}, 404)]) as server,
        pytest.raises(AssertionError, match="HTTP status 404"),
    ):
        run("bash", "-c", example, cwd=tmp_path, BASE_URL=server.base_url, API_KEY="")
    assert [request.path for request in server.received] == ["/v1/pets", "/v1/pets"]


def test_api_page_works_in_a_browser(service: RunningService, tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        skip("Chromium is not installed")
    link_node_modules(tmp_path)
    shutil.copy(Path(__file__).with_name("page.mjs"), tmp_path)
    url = f"{service.origin}/docs"
    run("node", "page.mjs", url, chromium, service.api_key, cwd=tmp_path)
