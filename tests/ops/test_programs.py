"""The programs that the commands of a stage start, for real or as a script."""

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CalledProcessError
from unittest.mock import Mock

import pytest

from ops import programs
from ops.artifacts import unpacked
from tests.support.processes import RunningService
from tools.git import git
from tools.packaging import artifact

# A conftest.py that notes what the run of a suite can reach.
RECORDER = """
import importlib.util, json, os, pathlib

def pytest_sessionfinish():
    checkout = importlib.util.find_spec("tools") and "found"
    record = {"checkout": checkout, "home": os.path.expanduser("~"), "variables": [*os.environ]}
    pathlib.Path("record.json").write_text(json.dumps(record))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Pack this checkout's suite with an artifact, and unpack it into an empty folder."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build/template.yaml").write_text(
        "{Parameters: {Architecture: {}}, Resources: {}}"
    )
    content = artifact.pack(tmp_path / "build", "arm64", "a" * 40)
    with unpacked(content) as (folder, _):
        yield folder


def stage(url: str) -> Mock:
    return Mock(required_outputs=lambda: {"BaseUrl": url}, expected_failures="aws")


def test_packed_suite_runs_without_the_checkout_and_without_credentials(
    folder: Path, service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "suite/conftest.py").write_text(RECORDER)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")

    arguments = ("-q", "-m", "smoke_read_only")
    status = programs.run_suite(
        stage(service.base_url), folder, service.api_key, *arguments
    )

    assert status == 0
    record = json.loads((folder / "suite/record.json").read_text())
    assert record["checkout"] is None
    assert record["home"] == f"{folder}/suite"
    assert "AWS_ACCESS_KEY_ID" not in record["variables"]


def test_packed_suite_fails_in_a_sentence_where_no_service_answers(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url = "http://127.0.0.1:1/v1"
    assert programs.run_suite(stage(url), folder, "any", "-q") == 2
    assert f"{url} lists no animals with API_KEY" in capfd.readouterr().out


def test_git_tells_which_commit_is_older_and_fails_for_an_unknown_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q")
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    for message in ("old", "new"):
        git(tmp_path, *identity, "commit", "-qm", message, "--allow-empty")
    monkeypatch.setattr(programs, "ROOT", tmp_path)

    assert programs.is_ancestor("HEAD~1", "HEAD")
    assert not programs.is_ancestor("HEAD", "HEAD~1")
    with pytest.raises(CalledProcessError):
        programs.is_ancestor("f" * 40, "HEAD")


def test_sam_runs_in_a_folder_and_prints_to_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(programs, "SAM", "/bin/sh")

    assert programs.sam("-c", "pwd; exit 3", folder=tmp_path).wait() == 3
    assert capfd.readouterr().out == f"{tmp_path}\n"
