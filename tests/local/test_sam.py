"""`sam local` as its developers type it, in containers: skipped where no engine answers (`make sam-contract`)."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import processes
from tests.support.processes import RunningService, run_service
from tools import ROOT

HAS_ENGINE = shutil.which("docker") and not subprocess.call(
    ["docker", "info"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not HAS_ENGINE, reason="no container engine answers"),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Serve an empty store and the API by `make sam-local`."""
    processes.run("make", ".tools/sam/.installed", ".aws-sam/local/.layer", cwd=ROOT, timeout_s=600)
    with run_service(tmp_path_factory.mktemp("sam") / "data", command="sam-local") as service:
        yield service


def test_contract_holds_through_sam_local(served: RunningService) -> None:
    issued = json.loads(served.tool("keys", "issue", "--label", "second", "--json"))
    variables = {
        "BASE_URL": served.base_url,
        "API_KEY": served.api_key,
        "SECOND_API_KEY": issued["key"],
        "EXPECTED_FAILURES": "tests/contract/expected_failures/sam-local.yaml",
    }

    printed = processes.run("make", "contract", cwd=ROOT, timeout_s=900, **variables)

    assert "skipped" not in printed


def test_animals_are_those_of_make_run(tmp_path: Path) -> None:
    with run_service(tmp_path) as service:
        pet = service.http.post("/pets", json={"name": "Rex", "categoryId": 1}).json()
    with run_service(tmp_path, command="sam-local") as service:
        assert service.http.get(f"/pets/{pet['id']}").json() == pet
        other = service.http.post("/pets", json={"name": "Mia", "categoryId": 1}).json()
    with run_service(tmp_path) as service:
        assert service.http.get(f"/pets/{other['id']}").json() == other
