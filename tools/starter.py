"""`make starter`: a copy of this tree as a service of one's own, with another resource's name."""

import builtins
import keyword
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools import ROOT

_COPIED = ("LICENSE", "docs/page.png", "tools/locks/")  # the last is full of digests
# RESULTS.md would not be the new service's own. Names of another length make comments longer, and
# let the formatter break lines elsewhere.
_FINISH = f"""
git init --quiet
rm -f tools/benchmarks/RESULTS.md
{sys.prefix}/bin/ruff check --quiet --fix
{sys.prefix}/bin/ruff format --quiet
{ROOT}/.tools/uv/bin/uv lock --quiet
git add --all
git commit --quiet --message 'Start the service'
echo "A service of your own: cd $PWD && make run"
"""
# A word of a sentence or a part of a name, but not of another word, such as "snippets".
_WORDS = (
    ("(?<![a-z])(animal|pet)(?=s?(?![a-z]))", str.lower),
    ("(Animal|Pet)(?=s?(?![a-z]))", str.capitalize),
    ("(ANIMAL|(?<![A-Z])PET)(?=S?(?![A-Z]))", str.upper),
)


def starter(name: str, dest: Path) -> None:
    """Write the tree to a new folder, with a resource of another name, and commit it there.

    Args:
        name: The resource, such as book; several are called books.
        dest: The folder.
    """
    python = {*keyword.kwlist, *dir(builtins)}
    if not re.fullmatch("[a-z]{2,12}", name) or python & {name, f"{name}s"}:
        sys.exit(f"{name}: 2 to 12 letters from a to z, and no word of Python's own.")
    uses = rf"((def|class) |^from (\S+\.)?|import (.*, )?){name}s?\b"
    if not subprocess.call(["git", "grep", "-nE", uses, "--", "*.py"], cwd=ROOT):
        sys.exit(f"{name}: the code uses this name, see above.")
    dest.mkdir(parents=True)  # fails if it exists
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True)
    for file in listed.splitlines():
        new = dest / renamed(file, name)
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, new)
        if not file.startswith(_COPIED):
            new.write_text(renamed(new.read_text("utf-8"), name), "utf-8")
    subprocess.run(["bash", "-euc", _FINISH], cwd=dest, check=True)


def renamed(text: str, name: str) -> str:
    """Replace each animal or pet in a text, with its article and its case."""
    for pattern, case in _WORDS:
        text = re.sub(pattern, case(name), text)
    article = r"\1n\2" if name[0] in "aeiou" else r"\1\2"
    return re.sub(rf"(?i)\b(a)n?( [`*]*{name})", article, text)


if __name__ == "__main__":
    starter(sys.argv[1], Path(sys.argv[2]).expanduser())
