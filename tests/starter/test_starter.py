"""`make starter`: the tree as another service, on which the commands of this one work."""

from pathlib import Path

import pytest

from tests.support.processes import run
from tools import ROOT
from tools.git import git
from tools.starter import cursor, renamed, starter


@pytest.mark.slow
def test_starter_passes_every_check(tmp_path: Path) -> None:
    run("make", "starter", "NAME=book", f"DEST={tmp_path}/own", cwd=ROOT)

    run("make", "check", "test", cwd=tmp_path / "own", timeout_s=1800)


def test_events_have_a_cursor_of_their_own_list() -> None:
    event = (ROOT / "events/list-200-cursor.json").read_text()

    assert cursor("pet") in event
    assert cursor("book") == "AAAAAAAAAAJz2uou85g3rzXq"


def test_words_keep_their_case_and_get_their_article() -> None:
    text = "An animal, listPets, NewPet, PET_STATUS, animals_by_id, snippets, a pet"

    assert renamed(text, "book") == (
        "A book, listBooks, NewBook, BOOK_STATUS, books_by_id, snippets, a book"
    )
    assert renamed("A pet", "order") == "An order"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Book", "letters from a to z"),
        ("class", "Python's own"),
        ("response", "the code uses this name, in functions"),
    ],
)
def test_unusable_name_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        starter(name, tmp_path / "own")
    assert not (tmp_path / "own").exists()


def test_existing_folder_is_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="exists already"):
        starter("planet", tmp_path)


# git asks for a name; a hook or a signature, which its personal settings want, would fail.
NO_NAME = "[user]\nuseConfigOnly = true\n"
NAME = "[user]\nname = x\nemail = x@example.com\n"
HOOKS = "[core]\nhooksPath = ~/hooks\nexcludesFile = ~/ignored\n"
SIGNATURE = "[commit]\ngpgsign = true\n[gpg]\nprogram = false\n"


def set_personally(monkeypatch: pytest.MonkeyPatch, home: Path, settings: str) -> None:
    (home / ".gitconfig").write_text(settings)
    (home / "ignored").write_text("*.toml\n")
    (home / "hooks").mkdir()
    (home / "hooks/pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (home / "hooks/pre-commit").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))


def test_starter_without_a_name_for_git_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_personally(monkeypatch, tmp_path, NO_NAME)

    with pytest.raises(SystemExit, match="Nothing was written"):
        starter("planet", tmp_path / "parent/own")

    assert not (tmp_path / "parent").exists()


def test_starter_whose_formatting_fails_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_personally(monkeypatch, tmp_path, NAME)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "bin"))
    (tmp_path / "bin/bin").mkdir(parents=True)
    (tmp_path / "bin/bin/ruff").symlink_to("/bin/false")

    with pytest.raises(SystemExit, match="Nothing was written"):
        starter("planet", tmp_path / "own")

    assert not (tmp_path / "own").exists()


@pytest.mark.slow
def test_longest_name_passes_the_linter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_personally(monkeypatch, tmp_path, NAME)

    starter("encyclopedia", tmp_path / "own")

    assert (tmp_path / "own/functions/get_encyclopedia/app.py").exists()


@pytest.mark.parametrize(
    "settings", [HOOKS, pytest.param(SIGNATURE, marks=pytest.mark.slow)]
)
def test_personal_hooks_and_signatures_do_not_hinder_a_starter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: str
) -> None:
    set_personally(monkeypatch, tmp_path, NAME + settings)

    starter("planet", tmp_path / "own")

    assert git(tmp_path / "own", "log", "--format=%an <%ae> %s") == (
        b"x <x@example.com> Start the service\n"
    )
    assert b"pyproject.toml\n" in git(tmp_path / "own", "ls-files")
