"""git answers for the folder that is named, whatever its environment says."""

from pathlib import Path
from subprocess import CalledProcessError

import pytest

from tools.git import git

IDENTITY = ("-c", "user.name=x", "-c", "user.email=x@example.com")


def repository(folder: Path, file: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet")
    (folder / file).write_text("text\n")
    git(folder, "add", ".")
    git(folder, *IDENTITY, "commit", "--quiet", "-m", "x")
    return folder


@pytest.mark.parametrize("variable", ["GIT_DIR", "GIT_COMMON_DIR", "GIT_INDEX_FILE"])
def test_git_hook_of_another_repository_does_not_redirect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    repository(tmp_path / "other", "other.txt")
    ours = repository(tmp_path / "ours", "ours.txt")
    end = "/index" if variable == "GIT_INDEX_FILE" else ""
    monkeypatch.setenv(variable, f"{tmp_path}/other/.git{end}")

    assert git(ours, "ls-files") == b"ours.txt\n"


def test_repository_of_a_folder_above_is_not_taken(tmp_path: Path) -> None:
    repository(tmp_path, "home.txt")
    (tmp_path / "unpacked").mkdir()

    with pytest.raises(CalledProcessError):
        git(tmp_path / "unpacked", "rev-parse", "HEAD")
