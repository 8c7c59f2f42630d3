"""`make starter` copies the project under another name, and commits the copy."""

from pathlib import Path

import pytest

from tests.support.processes import run
from tools import ROOT
from tools.git import git
from tools.starter import create_starter, example_cursor, rename

AUTHOR = "[user]\nname = x\nemail = x@example.com\n"
OTHER_SETTINGS = """\
[core]
hooksPath = ~/hooks
excludesFile = ~/ignored
[commit]
gpgsign = true
[gpg]
program = false
"""


@pytest.mark.slow
def test_starter_with_the_longest_name_passes_its_own_tests(
    tmp_path: Path,
) -> None:
    run(
        "make",
        "starter",
        "NAME=encyclopedia",
        f"DEST={tmp_path}/service",
        cwd=ROOT,
        GIT_AUTHOR_NAME="x",
        GIT_COMMITTER_NAME="x",
        EMAIL="x@example.com",
    )

    run("make", "check", "test", cwd=tmp_path / "service", timeout_s=1800)


def test_first_commit_takes_only_the_author_from_git_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text(AUTHOR + OTHER_SETTINGS)
    (tmp_path / "ignored").write_text("*.toml\n")
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks/pre-commit").symlink_to("/bin/false")

    create_starter("planet", tmp_path / "service")

    author = git(tmp_path / "service", "log", "--format=%an <%ae> %s")
    assert author == b"x <x@example.com> Start the service\n"
    assert b"pyproject.toml\n" in git(tmp_path / "service", "ls-files")


def test_first_commit_needs_no_git_identity(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[user]\nuseConfigOnly = true\n")

    create_starter("planet", tmp_path / "service")

    author = git(tmp_path / "service", "log", "--format=%an <%ae>")
    assert author == b"nobody <nobody@localhost>\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Book", "letters from a to z"),
        ("class", "a word of Python"),
        ("list", "a word of Python"),
        ("response", "the code uses this name in functions"),
    ],
)
def test_starter_with_an_unusable_name_is_refused(
    tmp_path: Path, name: str, message: str
) -> None:
    with pytest.raises(SystemExit, match=message):
        create_starter(name, tmp_path / "service")


def test_existing_destination_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="exists already"):
        create_starter("planet", tmp_path)


def test_renamed_words_keep_their_case_and_get_an_article() -> None:
    text = "An animal, listPets, NewPet, PET_STATUS, animals_by_id, snippets, a pet"

    assert rename(text, "book") == (
        "A book, listBooks, NewBook, BOOK_STATUS, books_by_id, snippets, a book"
    )
    assert rename("A pet", "order") == "An order"
    assert rename(r"\banimal_live \npets", "book") == r"\bbook_live \nbooks"


def test_example_cursor_is_that_of_the_example_event() -> None:
    event = (ROOT / "events/list-200-cursor.json").read_text()

    assert example_cursor("pet") in event
