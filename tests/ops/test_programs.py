"""The programs that the commands of a stage start, for real or as a script."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ops import programs
from ops.artifacts import unpacked
from ops.stage import DeploymentError
from tests.support.processes import RunningService
from tools import ROOT
from tools.git import git
from tools.packaging import artifact
from tools.packaging.targets import TARGETS

# A conftest.py that notes what the run of a suite has loaded and can read.
RECORDER = """
import importlib.util, json, os, pathlib, sys

def pytest_sessionfinish():
    files = [getattr(module, "__file__", None) or "" for module in sys.modules.values()]
    record = {"files": files, "home": os.path.expanduser("~"), "variables": sorted(os.environ)}
    record["tools"] = importlib.util.find_spec("tools") and "found"
    pathlib.Path("record.json").write_text(json.dumps(record))
"""
IDENTITY = ("-c", "user.name=x", "-c", "user.email=x@example.com")


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Path]:
    """Pack this checkout's suite with an artifact, and unpack it into an empty folder."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build/template.yaml").write_text(
        "{Parameters: {Architecture: {}}, Resources: {}}"
    )
    target = TARGETS["arm64"]._replace(build_dir=tmp_path / "build")
    artifact.pack(target, "a" * 40)
    with unpacked(target.artifact.read_bytes()) as (folder, _):
        (folder / "suite/conftest.py").write_text(RECORDER)
        yield folder / "suite"


def record(suite: Path) -> Any:
    return json.loads((suite / "record.json").read_text())


def test_packed_suite_runs_without_the_checkout_and_without_credentials(
    suite: Path, service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.setenv(
        "EXPECTED_FAILURES", "tests/contract/expected_failures/sam-local.yaml"
    )

    arguments = ("-q", "-m", "smoke_read_only")
    status = programs.run_suite(
        suite, service.base_url, service.api_key, "aws", *arguments
    )

    seen = record(suite)
    environment = f"{ROOT}/.venv/"
    from_checkout = [
        file
        for file in seen["files"]
        if file.startswith(f"{ROOT}/") and not file.startswith(environment)
    ]
    assert (status, from_checkout) == (0, [])
    assert f"{suite}/tests/contract/conftest.py" in seen["files"]
    assert seen["tools"] is None
    assert seen["home"] == str(suite)
    assert {"AWS_ACCESS_KEY_ID", "EXPECTED_FAILURES"}.isdisjoint(seen["variables"])
    assert "CONTRACT_API_KEY" in seen["variables"]


def test_packed_suite_fails_where_the_contract_is_broken(
    suite: Path, service: RunningService
) -> None:
    document = suite / "openapi.yaml"
    text = document.read_text()
    document.write_text(text.replace("| `not_found` | 404 |", "| `not_found` | 410 |"))

    arguments = ("-q", "-k", "test_unknown_id")
    key = service.api_key
    assert programs.run_suite(suite, service.base_url, key, "aws", *arguments) == 1


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("", "Give a valid key of the service: API_KEY=..."),
        ("any", "No service answers at http://127.0.0.1:1/v1"),
    ],
)
def test_packed_suite_says_in_a_sentence_why_it_cannot_run(
    suite: Path, capfd: pytest.CaptureFixture[str], key: str, reason: str
) -> None:
    url = "http://127.0.0.1:1/v1"

    assert programs.run_suite(suite, url, key, "aws", "-q") == 2
    output = capfd.readouterr().out
    assert reason in output
    assert "FAILED" not in output


def commit(folder: Path, name: str) -> str:
    """Commit a new file; return the commit's digits."""
    (folder / name).touch()
    git(folder, "add", name)
    git(folder, *IDENTITY, "commit", "-qm", name)
    return git(folder, "rev-parse", "HEAD").decode().strip()


def test_git_tells_which_commit_is_older_or_that_it_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q")
    old, new = commit(tmp_path, "a"), commit(tmp_path, "b")
    monkeypatch.setattr(programs, "ROOT", tmp_path)

    assert programs.is_ancestor(old, new)
    assert not programs.is_ancestor(new, old)
    with pytest.raises(DeploymentError, match=r"git cannot tell.*--allow-older"):
        programs.is_ancestor("f" * 40, new)


def script(path: Path, text: str) -> None:
    """Write an executable shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_sam_prints_to_the_terminal_and_its_failure_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(programs, "SAM", tmp_path / "sam")
    with pytest.raises(DeploymentError, match="sam is not installed: make"):
        programs.require_sam()

    script(tmp_path / "sam", 'echo "$@ in $(pwd)"; [ "$1" != fail ]')
    programs.require_sam()
    assert programs.sam("deploy", "--x=1 2", folder=tmp_path)
    assert capfd.readouterr().out == f"deploy --x=1 2 in {tmp_path}\n"
    assert not programs.sam("fail", folder=tmp_path)
