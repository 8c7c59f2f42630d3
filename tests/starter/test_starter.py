"""`make starter`: the tree as another service, on which the commands of this one work."""

import subprocess
from pathlib import Path

import pytest

from tests.support.processes import run, run_service
from tools import ROOT
from tools.starter import renamed, starter


@pytest.mark.slow
@pytest.mark.parametrize(("name", "plural"), [("book", "books"), ("mouse", "mice")])
def test_starter_passes_every_check_and_runs(
    tmp_path: Path, name: str, plural: str
) -> None:
    dest = tmp_path / "own"
    run("make", "starter", f"NAME={name}", f"PLURAL={plural}", f"DEST={dest}", cwd=ROOT)

    run("make", "check", "test", cwd=dest, timeout_s=1800)

    python = dest / ".venv/bin/python"
    with run_service(tmp_path / "data", root=dest, python=python) as service:
        thing = service.http.post(f"/{plural}", json={"name": "x", "categoryId": 1})
        assert thing.status_code == 201
    run("git", "diff", "--exit-code", cwd=dest)
    left = ["git", "grep", "-i", r"animal\|examples/.*patch\|starter: ", ":!LICENSE"]
    assert subprocess.run(left, cwd=dest, check=False).returncode == 1


def test_words_get_their_case_number_and_article() -> None:
    text = "An animal, listPets, NewPet, PET_STATUS, animals_by_id, snippets, a pet"

    assert renamed(text, "mouse", "mice") == (
        "A mouse, listMice, NewMouse, MOUSE_STATUS, mice_by_id, snippets, a mouse"
    )
    assert renamed("A pet", "ox", "oxen") == "An ox"


@pytest.mark.parametrize(
    ("name", "plural", "dest", "message"),
    [
        ("Book", "", "new", "Book: NAME and PLURAL have 2 to 13 letters"),
        ("sheep", "sheep", "new", "sheep: one and several need different names"),
        ("list", "", "new", "list: the code uses this word already"),
        ("book", "", "", "is not an empty folder"),
    ],
)
def test_refusals(
    tmp_path: Path, name: str, plural: str, dest: str, message: str
) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(SystemExit, match=message):
        starter(name, tmp_path / dest, plural)

    assert [*tmp_path.iterdir()] == [tmp_path / "file"]
