"""The ASGI application: its pages, whom it answers, how long it waits, and what it logs."""

import json
import logging
import socket
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import Any
from unittest import mock

import httpx2
import pytest
import yaml
from starlette.testclient import TestClient

from tests.support.processes import RunningService, wait_for
from tools import ROOT
from tools.local import app
from tools.local.output import Output, open_log


@pytest.fixture
def http(service: RunningService) -> Iterator[httpx2.Client]:
    """Send requests with a key to any path."""
    origin = service.base_url.removesuffix("/v1")
    with httpx2.Client(base_url=origin, headers=service.http.headers) as client:
        yield client


@pytest.fixture
def output(tmp_path: Path) -> Iterator[Output]:
    """Output with a log of its own."""
    with closing(open_log(tmp_path / "functions.log")) as log:
        yield Output(log)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/", "SwaggerUIBundle("),
        ("/status", "Status of the animal store"),
    ],
)
def test_pages(http: httpx2.Client, path: str, text: str) -> None:
    response = http.get(path, follow_redirects=True)

    assert text in response.text
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert response.headers["X-Frame-Options"] == "DENY"
    policy = response.headers["Content-Security-Policy"]
    assert policy == "frame-ancestors 'none'"


def test_document_is_the_projects_with_this_server_alone(http: httpx2.Client) -> None:
    answer = http.get("/openapi.yaml", headers={"Host": "localhost:81"})

    assert answer.headers["Content-Type"] == "application/yaml"
    expected = yaml.safe_load((ROOT / "openapi.yaml").read_text())
    server = {"url": "http://localhost:81/v1", "description": "this machine"}
    assert yaml.safe_load(answer.text) == expected | {"servers": [server]}


def test_unusable_document_is_named(tmp_path: Path, output: Output) -> None:
    document = tmp_path / "openapi.yaml"
    document.touch()
    client = TestClient(app.Application(mock.Mock(), output, document))

    response = client.get("http://localhost/openapi.yaml")

    assert response.status_code == 500
    assert response.text.startswith(f"{document} cannot be used: ")


def test_only_names_of_this_machine_are_answered(http: httpx2.Client) -> None:
    other = {"Host": "127.0.0.1.evil.example"}

    assert http.get("/v1/pets", headers={"Host": "localhost"}).is_success
    assert http.get("/v1/pets", headers=other).status_code == 400


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /v1/pets HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    ],
    ids=["idle", "slow body"],
)
def test_client_that_does_not_complete_a_request_is_disconnected(sent: bytes) -> None:
    async def read_all(_: Any, receive: Any, __: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    server = app.server(read_all, idle_s=1)
    listener = socket.create_server(("127.0.0.1", 0))
    serving = Thread(target=server.run, args=[[listener]])
    serving.start()
    try:
        with socket.create_connection(listener.getsockname(), 5) as connection:
            connection.sendall(sent)
            assert connection.recv(1) == b""
    finally:
        server.should_exit = True
        serving.join()


@pytest.mark.parametrize("path", ["pets/{}", "{}", "pets?limit={}", "pets?cursor={}"])
def test_key_in_a_url_is_not_logged(service: RunningService, path: str) -> None:
    secret = service.api_key.removeprefix("animal_test_")
    begin = len(service.console.read_text())

    for start in ("animal_test_", "animal%5Ftest%5F", "animal%255Ftest%255F"):
        service.http.get("/" + path.format(f"%1B[2J%0A{start}{secret}"))

    shown = f"/v1/{path.format('%1B[2J%0Aanimal_test_...')}  "
    wait_for(lambda: service.console.read_text()[begin:].count(shown) == 3)
    assert secret not in (service.data / "functions.log").read_text()


def test_status_is_made_of_the_requests_lines(http: httpx2.Client) -> None:
    http.get("/v1/pets")
    before = http.get("/status.json").json()["counts"]
    http.get("/v1/pets")
    status = http.get("/status.json").json()

    counted = [row for row in status["counts"] if row not in before]
    assert [row["Operation"] for row in counted] == ["listPets"]
    last = status["last"][0]
    assert last["StoreCalls"] == 1
    begin = int(datetime.fromisoformat(last["timestamp"]).timestamp()) // 10 * 10
    requests, milliseconds = status["recent"][str(begin)]["listPets"]
    assert requests >= 1
    assert milliseconds >= last["Latency"]


TRACE = 'Traceback\n  File "/a/app.py", line 7, in handler\nValueError: why\n'
CHAIN = (
    f"{TRACE}\n\nThe above exception was the direct cause of ...\n\nServerError: 500\n"
)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (
            json.dumps({"level": "ERROR", "exception": CHAIN}),
            ["ValueError: why (/a/app.py, line 7); see"],
        ),
        ('{"level": "INFO"}', []),
        (TRACE, []),  # of a handler that cannot be loaded, which is said otherwise
        ("here\n", ["here"]),
        ("42", ["42"]),
        ('{"name": "Rex"}', ['{"name": "Rex"}']),
    ],
)
def test_what_handlers_print_and_raise_is_shown(
    caplog: pytest.LogCaptureFixture, output: Output, written: str, shown: list[str]
) -> None:
    caplog.set_level(logging.INFO, "tools.local.output")

    output.write(written)

    assert [text.strip().split(" /tmp")[0] for text in caplog.messages] == shown


def test_log_is_continued_and_its_end_kept(tmp_path: Path) -> None:
    log, rest = tmp_path / "functions.log", "." * 1_000_000
    for number in range(45):  # starts
        with closing(open_log(log)) as opened:
            Output(opened).write(f"{rest}line {number}\n")

    kept = (tmp_path / "functions.log.1").read_text() + log.read_text()
    assert kept.endswith(f"line 43\n{rest}line 44\n")
    assert 20_000_000 < len(kept) < 40_000_000
