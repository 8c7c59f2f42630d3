"""`make starter`: a copy of this tree as a service of one's own, with another resource's name."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from animal_store import api_key

from tools import ROOT

_LEFT_OUT = re.compile(
    "benchmarks/|tests/benchmarks/|locks/(?:charts|node)|CHANGELOG|docs/examples/.*patch|docs/page.png|"
    "tests/docs/test_worked_examples|tools/starter.py|tests/starter/"
)
# Of a file, what is about this project alone.
_OWN = re.compile(
    r"[^\n]*starter: leave out.*?starter: go on[^\n]*\n"
    r"|^(?: +|\| `tests/)benchmarks[/`][^\n]*\n",
    re.DOTALL | re.MULTILINE,
)
_LINK = re.compile(r"\[([^]]+)\]\([^)]*benchmarks/[^)]*\)")
_KEY = re.compile("animal(_(?:live|test)_[0-9A-Za-z]{32})[0-9A-Za-z]{6}")
_ARTICLE = re.compile(r"\b([Aa])n?( [`*]*(?:[Aa]nimal|[Pp]et)(?![a-z]))")
# A word of a sentence or a part of a name, but not of another word, such as "snippets".
_WORD = re.compile(
    "(?:[Aa]nimal|(?<![a-z])pet|Pet)s?(?![a-z])|(?:ANIMAL|(?<![A-Z])PET)S?(?![A-Z])"
)


def starter(
    name: Annotated[str, typer.Argument(help="The resource, such as book.")],
    dest: Annotated[Path, typer.Argument(help="A folder that is new or empty.")],
    plural: Annotated[str, typer.Option(help="If it is not the name with an s.")] = "",
) -> None:
    """Write the tree to a folder, with a resource of another name, and commit it there."""
    dest, plural = dest.expanduser().absolute(), plural or f"{name}s"
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    _refuse(name, plural, dest)
    for file in listed.split("\0")[:-1]:
        if _LEFT_OUT.match(file):
            continue
        new = dest / renamed(file, name, plural)
        new.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / file).read_text("utf-8")
        if file.startswith("locks/"):  # full of digests
            text = text.replace("animal", name)
        elif file != "LICENSE":
            # Comments and docstrings have longer words now.
            text = text.replace("max-line-length = 100", "max-line-length = 160")
            text = renamed(_LINK.sub(r"\1", _OWN.sub("", text)), name, plural)
        new.write_text(text, "utf-8")
        shutil.copymode(ROOT / file, new)
    (dest / "CHANGELOG.md").write_text("# Changelog\n", "utf-8")
    ruff = f"{sys.prefix}/bin/ruff"
    for command in (
        [ruff, "check", "--quiet", "--fix"],
        [ruff, "format", "--quiet"],
        [f"{ROOT}/.tools/uv/bin/uv", "lock", "--quiet"],
        ["git", "init", "--quiet"],
        ["git", "add", "--all"],
        ["git", "commit", "--quiet", "--message", f"Start the {name} store"],
    ):
        if subprocess.call(command, cwd=dest):
            sys.exit(f"{dest} is not complete, because this failed: {command}")
    print(f"{dest} is a service of your own: cd {dest} && make run")


def _refuse(name: str, plural: str, dest: Path) -> None:
    """Say why a starter cannot be made."""
    if name == plural:
        sys.exit(f"{name}: one and several need different names.")
    for word in (name, plural):
        if not re.fullmatch("[a-z]{2,13}", word):
            sys.exit(f"{word}: NAME and PLURAL have 2 to 13 letters from a to z.")
        search = ["git", "grep", "-qw", word, "--", "*.py", ":!*starter*"]
        if not subprocess.call(search, cwd=ROOT):
            sys.exit(f"{word}: the code uses this word already. Choose another.")
    if dest.exists() and (not dest.is_dir() or any(dest.iterdir())):
        sys.exit(f"{dest} is not an empty folder. Choose another DEST.")


def renamed(text: str, name: str, plural: str) -> str:
    """Replace each animal or pet in a text, with its article, its case and its number."""

    def key(found: re.Match[str]) -> str:
        if not api_key.is_well_formed(found[0]):
            return found[0]
        return name + found[1] + api_key.checksum(name + found[1])

    def word(found: re.Match[str]) -> str:
        old = found[0]
        new = plural if old[-1] in "sS" else name
        if old.isupper():
            return new.upper()
        return new.capitalize() if old[0].isupper() else new

    article = r"\1n\2" if name[0] in "aeiou" else r"\1\2"
    return _WORD.sub(word, _ARTICLE.sub(article, _KEY.sub(key, text)))


if __name__ == "__main__":
    typer.run(starter)
