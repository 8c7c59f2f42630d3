"""tools/git.py runs git on the repository of one folder, whatever the environment says."""

from pathlib import Path
from subprocess import CalledProcessError

import pytest

from tools.git import git


def test_hook_variables_and_personal_settings_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[core]\nexcludesFile = ~/ignored\n")
    (tmp_path / "ignored").write_text("*.py\n")
    git(tmp_path, "init", "--quiet")
    (tmp_path / "app.py").touch()
    git(tmp_path, "add", "*.py")
    monkeypatch.setenv("GIT_INDEX_FILE", f"{tmp_path}/other/.git/index")

    assert git(tmp_path, "ls-files") == b"app.py\n"


def test_repository_of_a_parent_folder_is_not_used(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "folder").mkdir()

    with pytest.raises(CalledProcessError):
        git(tmp_path / "folder", "ls-files")
