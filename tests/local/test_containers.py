"""`sam local` as its developers type it; needs a container engine."""

import json
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import boto3
import pytest

from tests.support import handlers, processes
from tests.support.processes import environment, run_service, wait_for
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


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_the_animals_are_those_of_make_run(tmp_path: Path) -> None:
    before = containers()
    with run_service(tmp_path) as service:
        pet = service.http.post("/pets", json={"name": "Rex", "categoryId": 1}).json()
    with run_service(tmp_path, command="sam-local") as service:
        read = service.http.get("/pets").json()
        own = with_sam(tmp_path)
        for command in (
            "make sam-invoke EVENT=events/list-200.json",
            "sam local invoke ListPetsFunction -e events/list-200.json",
        ):
            printed = subprocess.check_output(command.split(), cwd=ROOT, env=own)
            assert json.loads(json.loads(printed)["body"])[0] == pet
        service.process.send_signal(signal.SIGINT)
        service.process.wait(30)

    assert read[0] == pet  # then the events' animals
    assert containers() == before
    assert "Traceback" not in service.console.read_text()


def test_every_event_gets_the_status_of_its_name_from_start_lambda(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else start-lambda would ignore Ctrl-C where the tests themselves run in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    own = with_sam(tmp_path)
    command = ["sam", "local", "start-lambda", "--port", "3998"]
    # Clients made under the local service's settings reach DynamoDB alone.
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    client = boto3.Session().client(
        "lambda",
        "us-east-1",
        endpoint_url="http://127.0.0.1:3998",
        aws_access_key_id="none",
        aws_secret_access_key="none",
    )
    statuses = {}
    with (
        run_service(tmp_path, command="sam-local"),
        subprocess.Popen(command, cwd=ROOT, env=own) as process,
    ):
        try:
            wait_for(lambda: is_open(3998), 120)
            for name, event in handlers.EVENTS.items():
                invoked = client.invoke(
                    FunctionName=handlers.function_of(event), Payload=json.dumps(event)
                )
                statuses[name] = str(json.load(invoked["Payload"])["statusCode"])
        finally:
            process.send_signal(signal.SIGINT)

    assert all(name.split("-")[1] == status for name, status in statuses.items())


def test_contract_holds_through_sam_local(tmp_path: Path) -> None:
    expected_failures = "tests/contract/expected_failures/sam-local.yaml"
    # Without the events' key, which is invalid everywhere else.
    with run_service(tmp_path, command="sam-local", EVENTS="0") as service:
        processes.check_contract(service, expected_failures)
