"""The ASGI application: its pages, whom it answers, how long it waits, and what it logs."""

import json
import logging
import socket
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import Any
from unittest import mock

import httpx2
import pytest
import yaml
from starlette.testclient import TestClient

from tests.support.in_process import service_in_process
from tools import ROOT
from tools.local import app
from tools.local.output import Output, open_log


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    with service_in_process(tmp_path_factory.mktemp("service")) as target:
        headers = {"Authorization": f"Bearer {target.api_keys[0]}"}
        yield httpx2.Client(
            base_url="http://127.0.0.1:3000",
            headers=headers,
            transport=target.transport,
        )


@pytest.fixture
def output(tmp_path: Path) -> Iterator[Output]:
    """Output with a log of its own."""
    with closing(open_log(tmp_path / "functions.log")) as log:
        yield Output(log)


@pytest.mark.parametrize(
    ("path", "content_type", "text"),
    [
        ("/", "text/html; charset=utf-8", "SwaggerUIBundle("),
        ("/docs", "text/html; charset=utf-8", "SwaggerUIBundle("),
        ("/docs/swagger-ui.min.css", "text/css; charset=utf-8", ".swagger-ui"),
        ("/status", "text/html; charset=utf-8", "Status of the animal store"),
    ],
)
def test_pages(http: httpx2.Client, path: str, content_type: str, text: str) -> None:
    response = http.get(path, follow_redirects=True)

    assert response.status_code == 200
    assert response.headers["Content-Type"] == content_type
    assert text in response.text
    assert http.post(path, json={}).status_code == 405
    if content_type.startswith("text/html"):
        assert response.headers["X-Frame-Options"] == "DENY"
        policy = response.headers["Content-Security-Policy"]
        assert policy == "frame-ancestors 'none'"


def test_document_is_the_projects_with_this_server_alone(http: httpx2.Client) -> None:
    answer = http.get("/openapi.yaml", headers={"Host": "localhost:81"})

    assert answer.headers["Content-Type"] == "application/yaml"
    expected = yaml.safe_load((ROOT / "openapi.yaml").read_text())
    server = {"url": "http://localhost:81/v1", "description": "this machine"}
    assert yaml.safe_load(answer.text) == expected | {"servers": [server]}


@pytest.mark.parametrize("content", ["", "[", "- a list"])
def test_unusable_document_is_named(
    tmp_path: Path, output: Output, content: str
) -> None:
    document = tmp_path / "openapi.yaml"
    document.write_text(content)
    client = TestClient(app.Application(mock.Mock(), output, document))

    response = client.get("http://localhost/openapi.yaml")

    assert response.status_code == 500
    assert response.text.startswith(f"{document} cannot be used: ")


def test_only_names_of_this_machine_are_answered(http: httpx2.Client) -> None:
    other = {"Host": "127.0.0.1.evil.example:3000"}

    assert http.get("/v1/pets", headers={"Host": "localhost:3000"}).is_success
    assert http.get("/v1/pets", headers=other).status_code == 400


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /v1/pets HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    ],
    ids=["idle", "slow body"],
)
def test_client_that_does_not_complete_a_request_is_disconnected(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read_all(_: Any, receive: Any, __: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    # Time goes thirty times as fast: 45 seconds are 1.5.
    monkeypatch.setattr(app, "_RECEIVE_SECONDS", app._RECEIVE_SECONDS / 30)
    server, listener = app.server(read_all), socket.create_server(("127.0.0.1", 0))
    serving = Thread(target=server.run, args=[[listener]])
    serving.start()
    try:
        with socket.create_connection(listener.getsockname(), 1.5) as connection:
            connection.sendall(sent)
            assert connection.recv(1) == b""
    finally:
        server.should_exit = True
        serving.join()


@pytest.mark.parametrize("underscore", ["_", "%5F", "%255F"])
@pytest.mark.parametrize("path", ["pets/{}", "{}", "pets?limit={}", "pets?cursor={}"])
def test_key_in_a_url_is_not_logged(  # noqa: PLR0917
    http: httpx2.Client,
    caplog: pytest.LogCaptureFixture,
    output: Output,
    tmp_path: Path,
    path: str,
    underscore: str,
) -> None:
    caplog.set_level(logging.INFO, "tools.local")
    key = http.headers["Authorization"].removeprefix("Bearer ")

    with redirect_stdout(output):
        http.get("/v1/" + path.format("%1B[2J%0A" + key.replace("_", underscore)))

    (shown,) = caplog.messages
    assert f"/v1/{path.format('%1B[2J%0Aanimal_test_...')}  " in shown
    log = (tmp_path / "functions.log").read_text()
    assert key.removeprefix("animal_test_") not in log


def test_log_names_what_a_request_needs(
    http: httpx2.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tools.local.app")

    http.get("/v1/pets?" + "x" * 300, headers={"Authorization": ""})

    (shown,) = caplog.messages
    assert len(shown) < 300
    assert shown.endswith("ms  (needs: Authorization: Bearer API_KEY)")


def test_status_is_made_of_the_requests_lines(
    http: httpx2.Client, output: Output
) -> None:
    http.get("/v1/pets")  # the key is cached from now on
    with redirect_stdout(output):
        http.post("/v1/pets", json={"name": "Rex", "categoryId": 1})
        http.get("/v1/pets")
    status = output.summary()

    assert status["counts"] == [
        {"Operation": "createPet", "Status": "201", "Requests": 1},
        {"Operation": "listPets", "Status": "200", "Requests": 1},
    ]
    read, created = status["last"]
    assert read["Operation"] == "listPets"
    assert read["StoreCalls"] == 1
    for each in (created, read):
        begin = int(datetime.fromisoformat(each["timestamp"]).timestamp()) // 10 * 10
        point = status["recent"][begin][each["Operation"]]
        assert point == [1, each["Latency"]]
    assert http.get("/status.json").json()["counts"] == []


TRACE = 'Traceback\n  File "/a/app.py", line 7, in handler\nValueError: why\n'
CHAIN = (
    f"{TRACE}\n\nThe above exception was the direct cause of ...\n\nServerError: 500\n"
)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (json.dumps({"level": "ERROR", "exception": CHAIN}), "ValueError: why (/a/app"),
        ('{"level": "INFO"}', ""),
        (TRACE, ""),  # of a handler that cannot be loaded, which is said otherwise
        ("here\n", "here"),
        ("\n", ""),
        ('{"name": "Rex"}', '{"name": "Rex"}'),
        ("42", "42"),
    ],
)
def test_what_handlers_print_and_raise_is_shown(
    caplog: pytest.LogCaptureFixture, output: Output, written: str, shown: str
) -> None:
    caplog.set_level(logging.INFO, "tools.local.output")

    output.write(written)

    assert [text.strip()[: len(shown)] for text in caplog.messages] == [shown][
        : len(shown)
    ]


def test_log_is_continued_and_its_end_kept(tmp_path: Path) -> None:
    log, rest = tmp_path / "functions.log", "." * 1_000_000
    for number in range(45):  # starts
        with closing(open_log(log)) as opened:
            Output(opened).write(f"{rest}line {number}\n")

    kept = (tmp_path / "functions.log.1").read_text() + log.read_text()
    assert kept.endswith(f"line 43\n{rest}line 44\n")
    assert 20_000_000 < len(kept) < 40_000_000
