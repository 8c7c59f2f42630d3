"""The ASGI application: its pages, whom it answers, and what it logs."""

import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pytest
import yaml

from tests.support.processes import RunningService, wait_for
from tools import ROOT
from tools.local.output import Output, open_log


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/", "SwaggerUIBundle("),
        ("/status", "Status of the animal store"),
    ],
)
def test_pages(service: RunningService, path: str, text: str) -> None:
    response = service.http.get(f"{service.origin}{path}", follow_redirects=True)

    assert text in response.text
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = response.headers["Content-Security-Policy"]
    assert policy == "frame-ancestors 'none'"


def test_document_is_the_projects_with_this_server_alone(
    service: RunningService,
) -> None:
    headers = {"Host": "localhost:81"}
    answer = service.http.get(f"{service.origin}/openapi.yaml", headers=headers)

    assert answer.headers["Content-Type"] == "application/yaml"
    expected = yaml.safe_load((ROOT / "openapi.yaml").read_text())
    expected["servers"] = [{"url": "http://localhost:81/v1"}]
    assert yaml.safe_load(answer.text) == expected


def test_only_names_of_this_machine_are_answered(service: RunningService) -> None:
    other = {"Host": "127.0.0.1.evil.example"}

    assert service.http.get("/pets", headers={"Host": "localhost"}).is_success
    assert service.http.get("/pets", headers=other).status_code == 400


def test_key_in_a_url_is_not_logged(service: RunningService) -> None:
    secret = service.api_key.removeprefix("animal_test_")

    for path in ("pets/{}", "pets?cursor={}"):
        for start in ("animal_test_", "animal%5Ftest%5F"):
            service.http.get("/" + path.format(start + secret))

    wait_for(lambda: service.console.read_text().count("...") == 4)
    assert service.console.read_text().count(secret) == 5  # as printed at the start
    assert secret not in (service.data / "functions.log").read_text()


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


TRACE = 'Traceback\n  File "/a/app.py", line 7, in handler\nValueError: why'
CHAIN = f"{TRACE}\n\nThe above exception was the direct cause of ...\n\nOther: 500\n"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (
            json.dumps({"level": "ERROR", "exception": CHAIN}),
            ["ValueError: why; see LOG"],
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
    log = mock.Mock()
    log.name = "LOG"

    Output(log).write(written)

    assert caplog.messages == shown


@pytest.mark.parametrize(("size", "kept"), [(20_000_000, False), (20_000_001, True)])
def test_large_log_is_kept_under_another_name(
    tmp_path: Path, size: int, kept: bool
) -> None:
    log = tmp_path / "functions.log"
    log.write_bytes(bytes(size))

    open_log(log).close()

    assert (tmp_path / "functions.log.1").exists() is kept
    assert log.stat().st_mode & 0o777 == 0o600
