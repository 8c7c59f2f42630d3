"""`sam local` as its developers type it; needs a container engine."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support import processes
from tests.support.processes import ANIMAL_STORE, environment, run_service
from tools import ROOT

DOCKER_IS_MISSING = subprocess.getstatusoutput("docker info")[0] != 0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(DOCKER_IS_MISSING, reason="no container engine answers"),
]


@pytest.fixture(scope="module", autouse=True)
def _layer() -> None:
    """Build the layer that containers are given, as `make sam-local` does."""
    processes.run("make", ".aws-sam/local/.layer", cwd=ROOT, timeout_s=300)


def containers() -> set[str]:
    """List the engine's containers."""
    return set(subprocess.getoutput("docker ps --all --quiet").splitlines())


def test_documented_sam_commands_use_one_store(tmp_path: Path) -> None:
    before, path = containers(), f"{ROOT}/.tools/sam/bin:{os.environ['PATH']}"
    variables = environment(PATH=path, SAM_CLI_TELEMETRY="0")
    with run_service(tmp_path, "setsid", *ANIMAL_STORE, "sam-local") as service:
        pet = service.http.post("/pets", json={"name": "Rex", "categoryId": 1}).json()
        command = ["sam", "local", "invoke", "ListPetsFunction"]
        command += ["-e", "events/list-200.json"]
        printed = subprocess.check_output(command, cwd=ROOT, env=variables)
        assert json.loads(json.loads(printed)["body"])[-1] == pet
        # A terminal sends a signal to each process of the group.
        os.killpg(service.process.pid, signal.SIGINT)
        service.process.wait(30)

    assert containers() == before
    assert "Traceback" not in service.console.read_text()


def test_contract_holds_through_sam_local(tmp_path: Path) -> None:
    expected_failures = "tests/contract/expected_failures/sam-local.yaml"
    with run_service(tmp_path, *ANIMAL_STORE, "sam-local") as service:
        processes.check_contract(service, expected_failures)
