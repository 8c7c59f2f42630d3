"""`make starter` copies the project under another name, into a new git repository."""

from pathlib import Path

import pytest

from tests.support.processes import run
from tools import ROOT
from tools.git import git
from tools.starter import create_starter, example_cursor, rename


@pytest.mark.slow
def test_starter_with_a_name_of_12_letters_passes_its_tests(tmp_path: Path) -> None:
    service = tmp_path / "service"
    run("make", "starter", "NAME=encyclopedia", f"DEST={service}", cwd=ROOT)
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    git(service, *identity, "commit", "--quiet", "-m", "x")

    run("make", "check", "test", cwd=service, timeout_s=1800)


def test_starter_is_a_new_repository_with_renamed_files(tmp_path: Path) -> None:
    create_starter("planet", tmp_path / "service")

    files = git(tmp_path / "service", "ls-files").decode().splitlines()
    assert "functions/list_planets/app.py" in files


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


def test_renaming_keeps_case_and_corrects_a_and_an() -> None:
    text = "An animal, listPets, NewPet, PET_STATUS, animals_by_id, snippets, a pet"

    assert rename(text, "book") == (
        "A book, listBooks, NewBook, BOOK_STATUS, books_by_id, snippets, a book"
    )
    assert rename("A pet", "order") == "An order"
    assert rename(r"\banimal_live \npets", "book") == r"\bbook_live \nbooks"


def test_example_event_has_the_example_cursor() -> None:
    event = (ROOT / "events/list-200-cursor.json").read_text()

    assert example_cursor("pet") in event
