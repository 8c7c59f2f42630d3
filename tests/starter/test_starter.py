"""`make starter`: the tree as another service, on which the checks of this one pass."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import run
from tools import ROOT
from tools.starter import renamed, starter


@pytest.mark.slow
@pytest.mark.parametrize(("name", "plural"), [("book", ""), ("mouse", "mice")])
def test_starter_passes_the_quick_tests(tmp_path: Path, name: str, plural: str) -> None:
    dest = tmp_path / "own"
    run("make", "starter", f"NAME={name}", f"PLURAL={plural}", f"DEST={dest}", cwd=ROOT)
    for folder in (".venv", ".tools"):
        (dest / folder).symlink_to(ROOT / folder)
    packages = f"{dest}/clients/python/src:{dest}/packages/lambda_local/src"

    run("make", "check-python", cwd=dest, timeout_s=500)
    quick = [sys.executable, "-m", "pytest", "-q", "@tests/quick.txt"]
    run(*quick, "tests/docs/test_documents.py", cwd=dest, PYTHONPATH=packages)
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
        ("list", "", "new", "list: the code uses this name already"),
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
