"""`sam local` as its developers type it; needs a container engine."""

import json
import os
import signal
import subprocess
from pathlib import Path

import httpx2
import pytest

from tests.support import handlers, processes
from tests.support.processes import environment, run_service
from tools import ROOT

MISSING = subprocess.getstatusoutput("docker info")[0] != 0
pytestmark = pytest.mark.skipif(MISSING, reason="no container engine answers")


def containers() -> set[str]:
    """List the engine's containers."""
    return set(subprocess.getoutput("docker ps -aq").split())


def test_documented_commands_find_the_animals_of_make_run(tmp_path: Path) -> None:
    before, path = containers(), f"{ROOT}/.tools/sam/bin:{os.environ['PATH']}"
    own = environment(tmp_path, PATH=path, SAM_CLI_TELEMETRY="0")
    with run_service(tmp_path) as service:
        pet = service.http.post("/pets", json={"name": "Rex", "categoryId": 1}).json()
    with run_service(tmp_path, command="sam-local") as service:
        command = "sam local invoke ListPetsFunction -e events/list-200.json"
        printed = subprocess.check_output(command.split(), cwd=ROOT, env=own)
        assert json.loads(json.loads(printed)["body"])[0] == pet
        check_events(own)
        service.process.send_signal(signal.SIGINT)
        service.process.wait(30)

    assert containers() == before
    assert "Traceback" not in service.console.read_text()


def check_events(own: dict[str, str]) -> None:
    """Compare each event's status from start-lambda with its name."""
    command = ["sam", "local", "start-lambda", "--port", "3998"]
    http = httpx2.Client(timeout=60, transport=httpx2.HTTPTransport(retries=9))
    with http, subprocess.Popen(command, cwd=ROOT, env=own) as process:
        try:
            for name, event in handlers.EVENTS.items():
                function = f"functions/{handlers.function_of(event)}/invocations"
                url = f"http://127.0.0.1:3998/2015-03-31/{function}"
                assert f"-{http.post(url, json=event).json()['statusCode']}" in name
        finally:
            process.terminate()


def test_contract_holds_through_sam_local(tmp_path: Path) -> None:
    expected_failures = "tests/contract/expected_failures/sam-local.yaml"
    # Without the events' key, which is invalid everywhere else.
    with run_service(tmp_path, command="sam-local", EVENTS="0") as service:
        processes.check_contract(service, expected_failures)
