"""The ASGI application: its page, whom it answers, and what it logs."""

import json
import logging
from unittest import mock

import pytest

from tests.support.processes import RunningService, wait_for
from tools.local.output import Output


def test_the_root_leads_to_the_page(service: RunningService) -> None:
    response = service.http.get(f"{service.origin}/", follow_redirects=True)

    assert "SwaggerUIBundle(" in response.text
    policy = response.headers["Content-Security-Policy"]
    assert policy == "frame-ancestors 'none'"


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
