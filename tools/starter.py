"""`make starter`: a copy of this tree as a service of one's own, with another resource's name."""

import builtins
import keyword
import re
import shutil
import subprocess
import sys
from pathlib import Path

from animal_store.api_key import checksum, is_well_formed

from tools import ROOT

_COPIED = ("LICENSE", "docs/page.png", "locks/")  # the last is full of digests
# What would be false in a service that is new.
_BEGINNINGS = {
    "CHANGELOG.md": "# Changelog\n",
    "benchmarks/RESULTS.md": "# Results of the benchmark\n\nNot run yet: `make bench`.\n",
}
# Names of another length let the formatter break lines elsewhere.
_FINISH = f"""
{sys.prefix}/bin/ruff check --quiet --fix
{sys.prefix}/bin/ruff format --quiet
{ROOT}/.tools/uv/bin/uv lock --quiet
git init --quiet
git add --all
git commit --quiet --message 'Start the service'
"""
_KEY = re.compile(r"(animal_\w{37})\w{6}")
# A word of a sentence or a part of a name, but not of another word, such as "snippets".
_WORD = re.compile(
    "(?:(?<![a-z])(?:animal|pet)|Animal|Pet)(?=s?(?![a-z]))|(?:ANIMAL|(?<![A-Z])PET)(?=S?(?![A-Z]))"
)


def starter(name: str, dest: Path) -> None:
    """Write the tree to a new folder, with a resource of another name, and commit it there.

    Args:
        name: The resource, such as book; several are called books.
        dest: The folder.
    """
    _refuse(name)
    _refuse(f"{name}s")
    dest.mkdir(parents=True)
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True)
    for file in listed.splitlines():
        new = dest / renamed(file, name)
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, new)
        if not file.startswith(_COPIED):
            # Comments and docstrings may be longer now.
            text = renamed(new.read_text("utf-8"), name).replace(
                "max-line-length = 100", "max-line-length = 160"
            )
            new.write_text(_BEGINNINGS.get(file, text), "utf-8")
    subprocess.run(["bash", "-euc", _FINISH], cwd=dest, check=True)
    print(f"{dest} is a service of your own: cd {dest} && make run")


def _refuse(word: str) -> None:
    """End the program if a word cannot be a resource's name, and say why."""
    usable = re.fullmatch("[a-z]{2,13}", word) and not keyword.iskeyword(word)
    if not usable or hasattr(builtins, word):
        sys.exit(f"{word}: 2 to 13 letters from a to z, and no word of Python's own.")
    search = [
        "git",
        "grep",
        "-nE",
        rf"(def|class) {word}\b|^from (\S+\.)?{word} import|^import {word}\b",
        "--",
        "*.py",
    ]
    if not subprocess.call(search, cwd=ROOT):
        sys.exit(f"{word}: the code uses this name, see above.")


def renamed(text: str, name: str) -> str:
    """Replace each animal or pet in a text, with its article and its case."""

    def key(found: re.Match[str]) -> str:
        start = found[1].replace("animal", name)
        return start + checksum(start) if is_well_formed(found[0]) else found[0]

    def word(found: re.Match[str]) -> str:
        if found[0].isupper():
            return name.upper()
        return name if found[0].islower() else name.capitalize()

    text = _WORD.sub(word, _KEY.sub(key, text))
    article = r"\1n\2" if name[0] in "aeiou" else r"\1\2"
    return re.sub(rf"(?i)\b(a)n?( [`*]*{name})", article, text)


if __name__ == "__main__":
    starter(sys.argv[1], Path(sys.argv[2]).expanduser())
