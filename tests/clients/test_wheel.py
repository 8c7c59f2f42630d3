"""The wheel of the Python client, built from a copy of its folder alone."""

import shutil
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.processes import run
from tools import ROOT

UV = ROOT / ".tools/uv/bin/uv"


@pytest.mark.slow
def test_the_wheel_installs_and_knows_its_version_and_license(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "clients/python", tmp_path / "client")
    run(UV, "build", "--wheel", "client", "--out-dir", "dist", cwd=tmp_path)
    (wheel,) = tmp_path.glob("dist/*.whl")
    program = "import animal_store_client as store; print(store.AsyncClient, store.__version__)"
    with_wheel = (UV, "run", "--isolated", "--no-project", "--with", wheel)
    printed = run(*with_wheel, "python", "-c", program, cwd=tmp_path)
    assert printed.endswith("AsyncClient'> 1.0.0\n")
    licence = "animal_store_client-1.0.0.dist-info/licenses/LICENSE"
    assert ZipFile(wheel).read(licence) == (ROOT / "LICENSE").read_bytes()
