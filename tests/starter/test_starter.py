"""`make starter`: the tree as another service, on which the commands of this one work."""

from pathlib import Path

import pytest

from tests.support.processes import run
from tools import ROOT
from tools.starter import renamed, starter


@pytest.mark.slow
def test_starter_passes_every_check(tmp_path: Path) -> None:
    run("make", "starter", "NAME=book", f"DEST={tmp_path}/own", cwd=ROOT)

    run("make", "check", "test", cwd=tmp_path / "own", timeout_s=1800)


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
        ("paging", "the code uses this name"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        starter(name, tmp_path / "own")


def test_a_folder_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        starter("planet", tmp_path)
