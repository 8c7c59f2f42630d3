"""`make sam-local` and `sam local invoke`. The tests need a container engine."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.contract.waiting import wait_for
from tests.support.processes import (
    ANIMAL_STORE,
    check_contract,
    environment,
    run,
    run_service,
    skip,
)
from tools import ROOT


def list_containers() -> str:
    """Return the ids of all containers; skip the test if no container engine answers."""
    command = ["docker", "ps", "--all", "--quiet"]
    try:
        return subprocess.check_output(command, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        skip(f"no container engine answers: {error}")


@pytest.mark.slow
def test_sam_local_passes_suite_and_shares_a_store_with_invoke(
    tmp_path: Path,
) -> None:
    containers_before = list_containers()
    run("make", ".aws-sam/local/.layer", cwd=ROOT, timeout_s=300)
    with run_service(tmp_path, "setsid", *ANIMAL_STORE, "sam-local") as service:
        wait_for(lambda: "Running on" in service.console.read_text(), 60)
        pet = service.http.post("/pets", json={"name": "Rex", "categoryId": 1}).json()
        # This command is in events/README.md.
        sam = ".tools/sam/bin/sam"
        command = f"{sam} local invoke ListPetsFunction -e events/list-200.json"
        output = subprocess.check_output(command.split(), cwd=ROOT, env=environment())
        assert json.loads(json.loads(output)["body"])[-1] == pet
        expected_failures = "tests/contract/expected_failures/sam-local.yaml"
        check_contract(service.base_url, service.api_key, expected_failures)
        # Until now, sam may have printed tracebacks: it prints one for each HEAD request.
        console_text = service.console.read_text()
        # Ctrl-C in a terminal sends this signal to each process of the group.
        os.killpg(service.process.pid, signal.SIGINT)
        service.process.wait(30)

    assert list_containers() == containers_before
    assert "Traceback" not in service.console.read_text().removeprefix(console_text)
