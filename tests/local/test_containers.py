"""`sam local` as its developers type it; needs a container engine."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from lambda_local import LocalError

from tests.support import processes
from tests.support.processes import RunningService, environment, run_service
from tools import ROOT
from tools.local import sam

HAS_ENGINE = shutil.which("docker") and not subprocess.call(
    ["docker", "info"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
)
pytestmark = pytest.mark.skipif(not HAS_ENGINE, reason="no container engine answers")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Serve the API and an empty store by `make sam-local`."""
    with run_service(tmp_path_factory.mktemp("sam"), command="sam-local") as service:
        yield service


@pytest.mark.parametrize(
    "command",
    [
        "make sam-invoke EVENT=events/get-200.json",
        "sam local invoke GetPetFunction -e events/get-200.json",
    ],
)
def test_documented_command_prints_the_response(
    served: RunningService, command: str
) -> None:
    assert f"    {command}\n" in (ROOT / "events/README.md").read_text()

    path = f"{ROOT}/.tools/sam/bin:{os.environ['PATH']}"
    own = environment(served.data, PATH=path, SAM_CLI_TELEMETRY="0")
    printed = subprocess.check_output(["sh", "-c", command], cwd=ROOT, env=own)
    assert json.loads(printed)["statusCode"] == 200


def test_contract_holds_through_sam_local(tmp_path: Path) -> None:
    expected_failures = "tests/contract/expected_failures/sam-local.yaml"
    # Without the events' key, which is invalid everywhere else.
    with run_service(tmp_path, command="sam-local", EVENTS="0") as service:
        processes.check_contract(service, expected_failures)


def containers() -> set[str]:
    """List the engine's containers."""
    return set(subprocess.check_output(["docker", "ps", "-aq"], text=True).split())


def test_it_serves_the_animals_of_make_run_and_leaves_nothing(tmp_path: Path) -> None:
    with run_service(tmp_path) as service:
        pet = service.http.post("/pets", json={"name": "Rex", "categoryId": 1}).json()
    before = containers()
    with run_service(tmp_path, command="sam-local", EVENTS="0") as service:
        assert service.http.get("/pets").json() == [pet]
        assert containers() > before
        service.process.send_signal(signal.SIGINT)
        service.process.wait(30)

        assert containers() == before
        assert "Traceback" not in service.console.read_text()


def test_missing_image_is_named() -> None:
    with (
        mock.patch.object(sam, "_IMAGE", "127.0.0.1:1/lambda/python:3.13"),
        pytest.raises(LocalError, match="cannot run 127"),
    ):
        sam._engine()
