"""Copies this project as a new service for another resource, such as books: `make starter`."""

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

# Each pattern matches a whole word, or a part of a name such as NewPet, but not the "pet" in
# "snippets". In `\banimal` and `\nanimal`, the b or n is part of an escape, so `animal` matches.
_WORDS = (
    (r"(?:(?<![a-z])|(?<=\\[bn]))(animal|pet)(?=s?(?![a-z]))", str.lower),
    ("(Animal|Pet)(?=s?(?![a-z]))", str.capitalize),
    ("(ANIMAL|(?<![A-Z])PET)(?=S?(?![A-Z]))", str.upper),
)


def create_starter(name: str, folder: Path) -> None:
    """Write a renamed copy of this project to a new folder, which becomes a git repository.

    Args:
        name: The singular of the resource's name, such as book; an "s" is added for the plural.
        folder: The folder to create.
    """
    is_reserved = keyword.iskeyword(name) or hasattr(builtins, name)
    if is_reserved or not re.fullmatch("[a-z]{2,12}", name):
        sys.exit(
            f"{name}: must be 2 to 12 letters from a to z, and not a word of Python."
        )
    if folder.exists():
        sys.exit(f"{folder} exists already.")
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary, "tree")
        _write(tree, name)
        _add_to_git(tree)
        shutil.move(tree, folder)
    print(
        f"Your own service is in {folder}. Go there, then:"
        " git commit -m 'Start the service' && make run"
    )


def _write(tree: Path, name: str) -> None:
    """Write the files that git tracks, with the new name in them."""
    clash = re.compile(rf"(?m)((def|class) |^from (\S+\.)?|import (.*, )?){name}s?\b")
    # Leave out RESULTS.md, because the new service has no measurements yet.
    files = git(ROOT, "ls-files", "-z", ":!tests/benchmarks/RESULTS.md").decode()
    for file in files.rstrip("\0").split("\0"):
        target = tree / rename(file, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, target)
        if file.startswith("tools/locks/"):
            continue  # do not rename in these lock files: a digest may contain "pet"
        text = target.read_text("utf-8")
        if file.endswith(".py") and clash.search(text):
            sys.exit(f"{name}: the code uses this name in {file}.")
        # A long name makes some lines longer than this project's limit.
        text = text.replace("max-line-length = 100", "max-line-length = 160")
        text = text.replace(example_cursor("pet"), example_cursor(name))
        target.write_text(rename(text, name), "utf-8")


def example_cursor(partition: str) -> str:
    """Return the cursor of events/list-200-cursor.json; it depends on the partition key."""
    position = (2).to_bytes(8)
    scope = f"staging/{partition}?".encode()
    checksum = hashlib.blake2b(position + scope, digest_size=10).digest()
    return base64.urlsafe_b64encode(position + checksum).decode()


def _add_to_git(tree: Path) -> None:
    """Format the files of the new service, and add them to a new git repository."""
    ruff = f"{sys.prefix}/bin/ruff"
    subprocess.run([ruff, "check", "--quiet", "--fix"], cwd=tree, check=True)
    subprocess.run([ruff, "format", "--quiet"], cwd=tree, check=True)
    git(tree, "init", "--quiet", "--initial-branch", "main")
    git(tree, "add", "--all")


def rename(text: str, name: str) -> str:
    """Replace each word "animal" or "pet", keeping its case; choose "a" or "an" by the new name."""
    for pattern, case in _WORDS:
        text = re.sub(pattern, case(name), text)
    article = r"\1n\2" if name[0] in "aeiou" else r"\1\2"
    return re.sub(rf"(?i)\b(a)n?( [`*]*{name})", article, text)


if __name__ == "__main__":
    create_starter(sys.argv[1], Path(sys.argv[2]).expanduser())
