"""The commands for a stage start git and sam."""

from pathlib import Path

import pytest

from ops import programs
from tools import CommandError
from tools.git import git


def test_commits_are_compared_by_age(
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
    with pytest.raises(CommandError, match="git fetch"):
        programs.is_older("f" * 40, "HEAD")


def test_sam_runs_in_a_folder_and_prints_to_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(programs, "SAM", "/bin/sh")

    assert programs.sam("-c", "pwd; exit 3", folder=tmp_path).wait() == 3
    assert capfd.readouterr().out == f"{tmp_path}\n"
