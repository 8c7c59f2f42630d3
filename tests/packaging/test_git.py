"""tools/git.py runs git on the repository of one folder, whatever the environment says."""

from pathlib import Path
from subprocess import CalledProcessError

import pytest

from tools.git import git


def test_environment_variable_that_a_git_hook_has_set_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "app.py").touch()
    git(tmp_path, "add", ".")
    monkeypatch.setenv("GIT_INDEX_FILE", f"{tmp_path}/other/.git/index")

    assert git(tmp_path, "ls-files") == b"app.py\n"


def test_repository_of_a_parent_folder_is_not_used(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "folder").mkdir()

    with pytest.raises(CalledProcessError):
        git(tmp_path / "folder", "ls-files")
