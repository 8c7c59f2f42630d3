"""`make starter`: a copy of this tree as a service of one's own, with another resource's name."""

import base64
import builtins
import hashlib
import keyword
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import ROOT
from tools.git import git

# These match a word of a sentence and a part of a name, but nothing of "snippets". In `\banimal`
# and `\nanimal` the letter before the word belongs to an escape.
_WORDS = (
    (r"(?:(?<![a-z])|(?<=\\[bn]))(animal|pet)(?=s?(?![a-z]))", str.lower),
    ("(Animal|Pet)(?=s?(?![a-z]))", str.capitalize),
    ("(ANIMAL|(?<![A-Z])PET)(?=S?(?![A-Z]))", str.upper),
)
# README shows a module, so ruff cannot be left to put all of these in order.
_IMPORTS = re.compile(r"(?m)^(from \w+_store\.\w+ import [^(\n]*\n)+")


def starter(name: str, dest: Path) -> None:
    """Write the tree to a new folder, with a resource of another name, and commit it there.

    Args:
        name: The resource in the singular, such as book; the plural adds an s.
        dest: The folder.
    """
    is_pythons = keyword.iskeyword(name) or hasattr(builtins, name)
    if is_pythons or not re.fullmatch("[a-z]{2,12}", name):
        sys.exit(f"{name}: 2 to 12 letters from a to z, and no word of Python's own.")
    if dest.exists():
        sys.exit(f"{dest}: exists already.")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        _write(tree, name)
        try:
            _commit(tree)
        except subprocess.CalledProcessError as error:
            sys.exit(f"{error}\nIt says why above. Nothing was written to {dest}.")
        shutil.move(tree, dest)
    print(f"A service of your own is in {dest}. Go there, then: make run")


def _write(tree: Path, name: str) -> None:
    """Write the files that git has of this tree, with the other name."""
    uses = re.compile(rf"(?m)((def|class) |^from (\S+\.)?|import (.*, )?){name}s?\b")
    # The new service has no measurements yet.
    files = git(ROOT, "ls-files", "-z", ":!tools/benchmarks/RESULTS.md")
    for file in files.decode().rstrip("\0").split("\0"):
        new = tree / renamed(file, name)
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, new)
        if file.startswith("tools/locks/"):
            continue  # a digest may have letters that read like a word
        text = new.read_text("utf-8")
        if file.endswith(".py") and uses.search(text):
            sys.exit(f"{name}: the code uses this name, in {file}.")
        # A name of twelve letters makes lines longer than this tree's limit.
        text = text.replace("max-line-length = 100", "max-line-length = 160")
        text = text.replace(cursor("pet"), cursor(name))
        new.write_text(_IMPORTS.sub(_in_order, renamed(text, name)), "utf-8")


def cursor(partition: str) -> str:
    """Return the cursor used in `events/`; its checksum covers the name of the new list."""
    position = (2).to_bytes(8)
    scope = f"staging/{partition}?".encode()
    checksum = hashlib.blake2b(position + scope, digest_size=10).digest()
    return base64.urlsafe_b64encode(position + checksum).decode()


def _commit(tree: Path) -> None:
    """Format the new tree and commit it."""
    ruff = f"{sys.prefix}/bin/ruff"
    subprocess.run([ruff, "check", "--quiet", "--fix"], cwd=tree, check=True)
    subprocess.run([ruff, "format", "--quiet"], cwd=tree, check=True)
    git(tree, "init", "--quiet", "--initial-branch", "main")
    git(tree, "add", "--all")
    # Who commits is one of the personal settings, which `git` leaves out.
    commit = ["git", "commit", "--quiet", "--no-verify", "--no-gpg-sign"]
    subprocess.run([*commit, "-m", "Start the service"], cwd=tree, check=True)


def renamed(text: str, name: str) -> str:
    """Replace each animal or pet in a text, with its article and its case."""
    for pattern, case in _WORDS:
        text = re.sub(pattern, case(name), text)
    article = r"\1n\2" if name[0] in "aeiou" else r"\1\2"
    return re.sub(rf"(?i)\b(a)n?( [`*]*{name})", article, text)


def _in_order(imports: re.Match[str]) -> str:
    """Return lines in alphabetical order."""
    return "".join(sorted(imports[0].splitlines(keepends=True)))


if __name__ == "__main__":
    starter(sys.argv[1], Path(sys.argv[2]).expanduser())
