"""The ASGI application: its page, whom it answers, and what it logs."""

import json
import logging
from unittest import mock

import pytest

from tests.support.processes import RunningService
from tools.local.output import Output


def test_only_names_of_this_machine_are_answered(service: RunningService) -> None:
    other = {"Host": "127.0.0.1.evil.example"}

    assert service.http.get("/pets", headers={"Host": "localhost"}).is_success
    assert service.http.get("/pets", headers=other).status_code == 400


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
