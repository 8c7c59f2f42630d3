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


@pytest.mark.parametrize(
    "settings",
    [
        "[core]\nautocrlf = true\n",
        "[commit]\ngpgsign = true\n[user]\nsigningKey = none\n",
        "[core]\nhooksPath = /nonexistent\nexcludesFile = ../ignored\n",
        "[status]\nshowUntrackedFiles = no\n[color]\nui = always\n",
    ],
)
def test_personal_settings_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str
) -> None:
    (tmp_path / "ignored").write_text("*\n")
    (tmp_path / ".gitconfig").write_text(settings)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = repository(tmp_path / "folder", "a.txt")
    (folder / "new.txt").touch()

    assert git(folder, "show", "HEAD:a.txt") == b"text\n"
    assert git(folder, "status", "--porcelain") == b"?? new.txt\n"
