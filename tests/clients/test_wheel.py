"""The wheel of the Python client, built from a copy of its folder alone."""

import shutil
from pathlib import Path

import pytest

from tests.support.processes import run
from tools import ROOT

UV = ROOT / ".tools/uv/bin/uv"


@pytest.mark.slow
def test_the_wheel_installs_and_knows_its_version_and_license(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "clients/python", tmp_path / "client")
    run(UV, "build", "--wheel", "client", "--out-dir", "dist", cwd=tmp_path)
    (wheel,) = tmp_path.glob("dist/*.whl")
    run(UV, "venv", "venv", cwd=tmp_path)
    python = tmp_path / "venv/bin/python"
    run(UV, "pip", "install", "--python", python, wheel, cwd=tmp_path)
    program = "import animal_store_client as store; print(store.AsyncClient, store.__version__)"
    assert run(python, "-c", program, cwd=tmp_path).endswith("AsyncClient'> 1.0.0\n")
    (licence,) = tmp_path.glob(
        "venv/lib/*/site-packages/animal_store_client-*/licenses/LICENSE"
    )
    assert licence.read_text() == (ROOT / "LICENSE").read_text()
