"""The ASGI application: its pages, whom it answers, how long it waits, and what it logs."""

import json
import logging
import socket
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
import pytest
import yaml
from starlette.testclient import TestClient

from tests.support.processes import RunningService, wait_for
from tools import ROOT
from tools.local.app import Application
from tools.local.output import Output, open_log


def get(service: RunningService, path: str, **options: Any) -> httpx2.Response:
    """Send a request with a key to any path."""
    return service.http.get(service.base_url.replace("/v1", path), **options)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/", "SwaggerUIBundle("),
        ("/status", "Status of the animal store"),
    ],
)
def test_pages(service: RunningService, path: str, text: str) -> None:
    response = get(service, path, follow_redirects=True)

    assert text in response.text
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = response.headers["Content-Security-Policy"]
    assert policy == "frame-ancestors 'none'"


def test_document_is_the_projects_with_this_server_alone(
    service: RunningService,
) -> None:
    answer = get(service, "/openapi.yaml", headers={"Host": "localhost:81"})

    assert answer.headers["Content-Type"] == "application/yaml"
    expected = yaml.safe_load((ROOT / "openapi.yaml").read_text())
    expected["servers"] = [{"url": "http://localhost:81/v1"}]
    assert yaml.safe_load(answer.text) == expected


def test_unusable_document_is_named(tmp_path: Path) -> None:
    document = tmp_path / "openapi.yaml"
    document.touch()  # someone is editing it
    client = TestClient(Application(mock.Mock(), mock.Mock(), document))

    response = client.get("http://localhost/openapi.yaml")

    assert response.status_code == 500
    assert response.text.startswith(f"{document} cannot be used: ")


def test_only_names_of_this_machine_are_answered(service: RunningService) -> None:
    other = {"Host": "127.0.0.1.evil.example"}

    assert service.http.get("/pets", headers={"Host": "localhost"}).is_success
    assert service.http.get("/pets", headers=other).status_code == 400


def test_client_that_does_not_complete_a_request_is_disconnected(
    service: RunningService,
) -> None:
    address = service.http.base_url.host, service.http.base_url.port
    with (
        socket.create_connection(address, 30) as idle,
        socket.create_connection(address, 30) as slow,
    ):
        slow.send(b"POST /v1/pets HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n")
        slow.send(b"\r\n{")

        assert idle.recv(1) == b""
        assert slow.recv(1) == b""


@pytest.mark.parametrize("path", ["pets/{}", "{}", "pets?limit={}", "pets?cursor={}"])
def test_key_in_a_url_is_not_logged(service: RunningService, path: str) -> None:
    secret = service.api_key.removeprefix("animal_test_")

    for start in ("animal_test_", "animal%5Ftest%5F", "animal%255Ftest%255F"):
        service.http.get("/" + path.format(f"%1B[2J%0A{start}{secret}"))

    shown = f'"GET /v1/{path.format("%1B[2J%0Aanimal_test_...")} HTTP/1.1"'
    wait_for(lambda: service.console.read_text().count(shown) == 3)
    assert secret not in (service.data / "functions.log").read_text()


def test_client_does_not_choose_its_address(service: RunningService) -> None:
    service.http.get("/address", headers={"X-Forwarded-For": "192.0.2.1"})

    wait_for(lambda: '"GET /v1/address' in service.console.read_text())
    assert "192.0.2.1" not in service.console.read_text()


def test_status_is_made_of_the_requests_lines() -> None:
    output = Output(mock.Mock())
    request = {"level": "INFO", "Operation": "listPets", "Status": "200", "Latency": 2}
    moments = [datetime.fromtimestamp(second, UTC) for second in range(0, 620, 5)]
    lines = [request | {"timestamp": moment.isoformat()} for moment in moments]

    for line in lines:
        output.write(json.dumps(line))

    assert output.summary() == {
        "counts": [{"Operation": "listPets", "Status": "200", "Requests": 124}],
        "last": lines[:-21:-1],
        "recent": {second: {"listPets": [2, 4]} for second in range(10, 620, 10)},
    }


TRACE = 'Traceback\n  File "/a/app.py", line 7, in handler\nValueError: why\n'
CHAIN = f"{TRACE}\n\nThe above exception was the direct cause of ...\n\nOther: 500\n"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (
            json.dumps({"level": "ERROR", "exception": CHAIN}),
            ["ValueError: why (/a/app.py, line 7); see LOG"],
        ),
        ('{"level": "INFO"}', []),
        (TRACE, []),  # of a handler that cannot be loaded, which is said otherwise
        ("here\n", ["here"]),
        ('{"name": "Rex"}', ['{"name": "Rex"}']),
        ('{"level": broken', ['{"level": broken']),
    ],
)
def test_what_handlers_print_and_raise_is_shown(
    caplog: pytest.LogCaptureFixture, written: str, shown: list[str]
) -> None:
    caplog.set_level(logging.INFO, "tools.local.output")

    Output(mock.Mock(baseFilename="LOG")).write(written)

    assert caplog.messages == shown


def test_log_is_continued_and_its_end_kept(tmp_path: Path) -> None:
    log, rest = tmp_path / "functions.log", "." * 1_000_000
    for number in range(45):  # starts
        with closing(open_log(log)) as opened:
            Output(opened).write(f"{rest}line {number}\n")

    kept = (tmp_path / "functions.log.1").read_text() + log.read_text()
    assert kept.endswith(f"line 43\n{rest}line 44\n")
    assert 20_000_000 < len(kept) < 40_000_000
