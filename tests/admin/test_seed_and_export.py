"""The commands `seed` and `export`, against the service and against one that fails on purpose."""

import csv
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes import COMMAND, RunningService, environment, run_service
from tools import ROOT

Reply = tuple[int, dict[str, str], Any]


@pytest.fixture(scope="module")
def own_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service whose animals nobody else adds."""
    with run_service(tmp_path_factory.mktemp("seed") / "data") as service:
        yield service


def tool(data: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=environment(data, **variables),
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def exported(data: Path, *arguments: str) -> list[dict[str, Any]]:
    done = tool(data, "export", *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.removesuffix("\n").split("\n")]


@contextmanager
def scripted(reply: Callable[[str, int], Reply]) -> Iterator[str]:
    """A service that answers what `reply` makes of the method and the number of the request; its base URL."""
    count = 0

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal count
            count += 1
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            status, headers, body = reply(self.command, count)
            content = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def test_an_interrupted_run_is_continued(own_service: RunningService) -> None:
    first = tool(own_service.data, "seed", "--count", "130", "--seed", "7")
    again = tool(own_service.data, "seed", "--count", "150", "--seed", "7", "--concurrency", "20")

    assert "130 of 130 animals: 130 added, 0 already there" in first.stdout
    assert "150 of 150 animals: 20 added, 130 already there" in again.stdout
    assert len(exported(own_service.data)) == 150


def test_export_is_exact_in_both_formats(own_service: RunningService, tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {own_service.api_key}"}
    strange = {"name": '=1+1, "two"\r\nlines\u2028 Zoë', "categoryId": 2**63 - 1, "status": "pending"}
    httpx.post(f"{own_service.base_url}/pets", json=strange, headers=headers).raise_for_status()

    pets = exported(own_service.data, "--status", "pending")
    done = tool(own_service.data, "export", "--format", "csv", "--output", str(tmp_path / "pets.csv"))
    with (tmp_path / "pets.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    assert done.stdout == ""
    assert [pet["id"] for pet in pets] == sorted(pet["id"] for pet in pets)
    assert pets[-1] == {"id": pets[-1]["id"], **strange}
    expected = exported(own_service.data)
    assert [int(row["id"]) for row in rows] == [pet["id"] for pet in expected]
    for row, pet in zip(rows, expected, strict=True):
        assert (row["name"], int(row["categoryId"]), row["status"]) == (
            pet["name"],
            pet["categoryId"],
            pet.get("status", ""),
        )


def test_what_may_pass_is_repeated(tmp_path: Path) -> None:
    def reply(_: str, number: int) -> Reply:
        if number in {1, 3}:
            return 503, {"Retry-After": "0"}, {"code": "service_unavailable", "message": "Later.", "status": 503}
        return 201, {}, {"id": number, "name": "Rex", "categoryId": 1}

    with scripted(reply) as base_url:
        done = tool(tmp_path, "seed", "--count", "3", "--concurrency", "1", "--base-url", base_url, API_KEY="key")

    assert done.returncode == 0, done.stderr
    assert "3 of 3 animals: 3 added" in done.stdout
    assert "2 requests repeated" in done.stdout


def test_a_refusal_ends_the_run_and_says_why(own_service: RunningService) -> None:
    done = tool(own_service.data, "seed", "--count", "50", API_KEY="wrong")

    assert done.returncode == 1
    assert "401" in done.stderr
    assert "Missing or invalid API key." in done.stderr
    assert "Traceback" not in done.stderr


def test_the_key_goes_to_no_other_service(tmp_path: Path) -> None:
    link = {"Link": '<http://127.0.0.2:9/v1/pets?cursor=x>; rel="next"'}
    with scripted(lambda *_: (200, link, [{"id": 1, "name": "Rex", "categoryId": 1}])) as base_url:
        done = tool(tmp_path, "export", "--base-url", base_url, "--output", str(tmp_path / "out"), API_KEY="key")

    assert done.returncode == 1
    assert "not the service that was asked" in done.stderr
    assert not list(tmp_path.glob("*out*")), "half an export was left behind"


def test_a_file_that_cannot_be_written_is_named(own_service: RunningService, tmp_path: Path) -> None:
    done = tool(own_service.data, "export", "--output", str(tmp_path / "none/pets.csv"))

    assert done.returncode == 1
    assert "none/" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_service_it_says_what_to_do(tmp_path: Path) -> None:
    done = tool(tmp_path, "export")

    assert done.returncode == 1
    assert "--base-url" in done.stderr
