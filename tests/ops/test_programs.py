"""The commands for a stage start git, sam and the contract suite."""

import json
from io import BytesIO
from pathlib import Path
from subprocess import CalledProcessError
from zipfile import ZipFile

import pytest

from ops import programs
from tests.support.processes import RunningService
from tools.git import git
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
    """Pack this checkout's suite with an artifact, and unpack it into an empty folder."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build/template.yaml").write_text(
        "{Parameters: {Architecture: {}}, Resources: {}}"
    )
    content = artifact.pack(tmp_path / "build", "arm64", "a" * 40)
    ZipFile(BytesIO(content)).extractall(tmp_path / "unpacked")
    return tmp_path / "unpacked"


def test_packed_contract_suite_runs_without_the_checkout_or_aws_credentials(
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


def test_packed_contract_suite_reports_a_service_that_does_not_respond(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert programs.run_suite(folder, "http://127.0.0.1:1/v1", "any", "-q") == 2
    message = "http://127.0.0.1:1/v1 lists no animals with API_KEY"
    assert message in capfd.readouterr().out


def test_two_commits_are_compared_by_age_and_an_unknown_commit_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q")
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    for message in ("old", "new"):
        git(tmp_path, *identity, "commit", "-qm", message, "--allow-empty")
    monkeypatch.setattr(programs, "ROOT", tmp_path)

    assert programs.is_older("HEAD~1", "HEAD")
    assert not programs.is_older("HEAD", "HEAD~1")
    assert not programs.is_older("HEAD", "HEAD")
    with pytest.raises(CalledProcessError):
        programs.is_older("f" * 40, "HEAD")


def test_sam_runs_in_the_given_folder_and_prints_to_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(programs, "SAM", "/bin/sh")

    assert programs.sam("-c", "pwd; exit 3", folder=tmp_path).wait() == 3
    assert capfd.readouterr().out == f"{tmp_path}\n"
