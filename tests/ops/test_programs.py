"""`deploy` asks git which commit is older."""

from pathlib import Path
from subprocess import CalledProcessError

import pytest

from ops import programs
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
    with pytest.raises(CalledProcessError):
        programs.is_older("f" * 40, "HEAD")
