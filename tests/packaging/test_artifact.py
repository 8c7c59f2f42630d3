"""An artifact can be deployed, and its contract suite runs, without a checkout of its commit."""

import json
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from ops import programs
from tests.support.processes import RunningService
from tests.support.stack import parameters
from tools import ROOT
from tools.packaging import artifact

# A conftest.py that records what the suite can import and read.
RECORDING_CONFTEST = """
import importlib.util, json, os, pathlib

def pytest_sessionfinish():
    record = {
        "finds_checkout": importlib.util.find_spec("tools") is not None,
        "home": os.path.expanduser("~"),
        "variables": [*os.environ],
    }
    pathlib.Path("record.json").write_text(json.dumps(record))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Pack a build with one function, and unpack the artifact into an empty folder."""
    function = {"Type": "AWS::Serverless::Function", "Properties": {"CodeUri": "Code"}}
    template = {"Parameters": {"Architecture": {}}, "Resources": {"Code": function}}
    build = tmp_path / "build"
    (build / "Code").mkdir(parents=True)
    (build / "Code/app.py").touch()
    (build / "template.yaml").write_text(json.dumps(template))
    content = artifact.pack(build, "x86_64", "a" * 40)
    ZipFile(BytesIO(content)).extractall(tmp_path / "unpacked")
    return tmp_path / "unpacked"


def test_artifact_has_commit_settings_template_and_code(folder: Path) -> None:
    assert (folder / "COMMIT").read_text() == "a" * 40
    settings = (ROOT / "samconfig.toml").read_text()
    assert (folder / "samconfig.toml").read_text() == settings
    template = yaml.safe_load((folder / "template.yaml").read_text())
    assert template["Resources"]["Code"]["Properties"] == {"CodeUri": "Code.zip"}
    assert template["Parameters"]["Architecture"] == {"Default": "x86_64"}
    (code,) = ZipFile(folder / "Code.zip").infolist()
    assert oct(code.external_attr >> 16) == "0o644"  # Lambda runs as another user


@pytest.mark.parametrize("stage", ["staging", "production"])
def test_stage_settings_leave_the_architecture_alone(stage: str) -> None:
    assert "Architecture" not in parameters(stage)


def test_suite_runs_without_checkout_or_credentials(
    folder: Path, service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "suite/conftest.py").write_text(RECORDING_CONFTEST)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")

    status = programs.run_suite(
        folder, service.base_url, service.api_key, "-q", "-m", "smoke_read_only"
    )

    assert status == 0
    record = json.loads((folder / "suite/record.json").read_text())
    assert not record["finds_checkout"]
    assert record["home"] == f"{folder}/suite"
    assert "AWS_ACCESS_KEY_ID" not in record["variables"]
    # Without pytest's settings, the suite would run less strictly.
    assert (folder / "suite/pyproject.toml").exists()


def test_suite_reports_a_service_that_does_not_respond(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert programs.run_suite(folder, "http://127.0.0.1:1/v1", "any", "-q") == 2
    message = "http://127.0.0.1:1/v1/pets with API_KEY failed"
    assert message in capfd.readouterr().out


def test_bytes_do_not_depend_on_the_order_of_files() -> None:
    files = {"a": b"1", "b": b"2"}
    files_in_other_order = {"b": b"2", "a": b"1"}
    assert artifact.zip_files(files) == artifact.zip_files(files_in_other_order)
