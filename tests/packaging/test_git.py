"""tools/git.py runs git on the repository of one folder, whatever the environment says."""

from pathlib import Path
from subprocess import CalledProcessError

import pytest

from tools.git import git


def test_hook_variables_and_personal_settings_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "git").mkdir()
    (tmp_path / "git/config").write_text("[core]\nquotePath = false\n")
    (tmp_path / "git/ignore").write_text("*.py\n")
    git(tmp_path, "init", "--quiet")
    (tmp_path / "é.py").touch()
    git(tmp_path, "add", "*.py")
    monkeypatch.setenv("GIT_INDEX_FILE", f"{tmp_path}/other/.git/index")

    assert git(tmp_path, "ls-files") == b'"\\303\\251.py"\n'


def test_repository_of_a_parent_folder_is_not_used(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "folder").mkdir()

    with pytest.raises(CalledProcessError):
        git(tmp_path / "folder", "ls-files")
