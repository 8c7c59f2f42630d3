"""git answers for the folder that is named, whatever its environment says."""

from pathlib import Path
from subprocess import CalledProcessError

import pytest

from tools.git import git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder whose repository has one file."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / "app.py").touch()
    git(tmp_path, "add", ".")
    return tmp_path


def test_git_hook_of_another_repository_does_not_redirect(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_INDEX_FILE", f"{repository}/other/.git/index")

    assert git(repository, "ls-files") == b"app.py\n"


def test_repository_of_a_folder_above_is_not_taken(repository: Path) -> None:
    (repository / "unpacked").mkdir()

    with pytest.raises(CalledProcessError):
        git(repository / "unpacked", "ls-files")
