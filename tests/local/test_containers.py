"""`sam local` as its developers type it; needs a container engine."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import httpx2
import pytest

from tests.support import handlers, processes
from tests.support.processes import environment, run_service
from tools import ROOT

HAS_ENGINE = shutil.which("docker") and not subprocess.call(
    ["docker", "info"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
)
pytestmark = pytest.mark.skipif(not HAS_ENGINE, reason="no container engine answers")


def containers() -> set[str]:
    """List the engine's containers."""
    return set(subprocess.check_output(["docker", "ps", "-aq"], text=True).split())


def with_sam(data: Path) -> dict[str, str]:
    """Return the environment of a terminal in which `sam` is the project's own."""
    path = f"{ROOT}/.tools/sam/bin:{os.environ['PATH']}"
    return environment(data, PATH=path, SAM_CLI_TELEMETRY="0")


def test_documented_commands_find_the_animals_of_make_run(tmp_path: Path) -> None:
    before, own = containers(), with_sam(tmp_path)
    with run_service(tmp_path) as service:
        pet = service.http.post("/pets", json={"name": "Rex", "categoryId": 1}).json()
    with run_service(tmp_path, command="sam-local") as service:
        for command in (
            "make sam-invoke EVENT=events/list-200.json",
            "sam local invoke ListPetsFunction -e events/list-200.json",
        ):
            printed = subprocess.check_output(command.split(), cwd=ROOT, env=own)
            assert json.loads(json.loads(printed)["body"])[0] == pet
        check_events(own)
        service.process.send_signal(signal.SIGINT)
        service.process.wait(30)

    assert containers() == before
    assert "Traceback" not in service.console.read_text()


def check_events(own: dict[str, str]) -> None:
    """Compare each event's status from start-lambda with its name."""
    # Else start-lambda would ignore Ctrl-C where the tests themselves run in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command = ["sam", "local", "start-lambda", "--port", "3998"]
    http = httpx2.Client(timeout=60, transport=httpx2.HTTPTransport(retries=9))
    with http, subprocess.Popen(command, cwd=ROOT, env=own) as process:
        try:
            for name, event in handlers.EVENTS.items():
                function = f"functions/{handlers.function_of(event)}/invocations"
                url = f"http://127.0.0.1:3998/2015-03-31/{function}"
                assert f"-{http.post(url, json=event).json()['statusCode']}" in name
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def test_contract_holds_through_sam_local(tmp_path: Path) -> None:
    expected_failures = "tests/contract/expected_failures/sam-local.yaml"
    # Without the events' key, which is invalid everywhere else.
    with run_service(tmp_path, command="sam-local", EVENTS="0") as service:
        processes.check_contract(service, expected_failures)
