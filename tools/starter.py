"""`make starter`: a copy of this tree as a service of one's own, with another resource's name."""

import re
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import Annotated

import typer
from animal_store import api_key

from tools import ROOT

_LEFT_OUT = re.compile(
    "benchmarks/|tests/benchmarks/|CHANGELOG|docs/examples/.*patch|docs/page.png|"
    "tests/docs/test_worked_examples|tools/starter.py|tests/starter/"
)
_KEY = re.compile("animal(_(?:live|test)_[0-9A-Za-z]{32})[0-9A-Za-z]{6}")
# A word of a sentence or a part of a name, but not of another word, such as "snippets".
_WORD = re.compile(
    "(?P<lower>animal|(?<![a-z])pet)(?P<plural>s?)(?![a-z])|"
    "(?P<title>Animal|Pet)(?P<plurals>s?)(?![a-z])|"
    "(?P<upper>ANIMAL|(?<![A-Z])PET)(?P<PLURAL>S?)(?![A-Z])"
)
_ARTICLE = re.compile(r"\b([Aa])n?( [`*]*(?:[Aa]nimal|[Pp]et)(?![a-z]))")
_LINK = re.compile(r"\[([^]]+)\]\(([^):#]+)[^)]*\)")


def starter(
    name: Annotated[str, typer.Argument(help="The resource, such as book.")],
    dest: Annotated[Path, typer.Argument(help="A folder that is new or empty.")],
    plural: Annotated[str, typer.Option(help="If it is not the name with an s.")] = "",
) -> None:
    """Write the tree to a folder, with a resource of another name, and commit it there."""
    dest = dest.expanduser().absolute()
    if not plural and name.endswith(("s", "x", "y", "z", "h")):
        sys.exit(f"What are several called? Add PLURAL=... to NAME={name}.")
    plural = plural or f"{name}s"
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    files = [file for file in listed.split("\0") if file and not _LEFT_OUT.match(file)]
    _refuse(name, plural, dest, files)
    for file in files:
        old, new = ROOT / file, dest / renamed(file, name, plural)
        new.parent.mkdir(parents=True, exist_ok=True)
        text = old.read_text("utf-8")
        if file == "uv.lock" or file.startswith("locks/"):  # full of digests
            text = text.replace("animal", name)
        else:
            text = renamed(_trimmed(file, text), name, plural)
        new.write_text(text, "utf-8")
        shutil.copymode(old, new)
    (dest / "CHANGELOG.md").write_text("# Changelog\n", "utf-8")
    for document in dest.rglob("*.md"):
        _unlink(document)
    _finish(dest, name)
    print(f"{dest} is a service of your own: cd {dest} && make run")


def _refuse(name: str, plural: str, dest: Path, files: list[str]) -> None:
    """Say why a starter cannot be made."""
    for word in (name, plural):
        if not re.fullmatch("[a-z]{2,20}", word):
            sys.exit(f"{word}: NAME and PLURAL have 2 to 20 letters from a to z.")
    if name == plural:
        sys.exit(f"{name}: one and several need different names.")
    used: set[str] = set()
    for file in files:
        if file.endswith(".py"):
            with (ROOT / file).open("rb") as source:
                used.update(
                    token.string for token in tokenize.tokenize(source.readline)
                )
    if taken := used & {name, plural}:
        sys.exit(f"{taken.pop()}: the code uses this name already. Choose another.")
    if dest.exists() and (not dest.is_dir() or any(dest.iterdir())):
        sys.exit(f"{dest} is not an empty folder. Choose another DEST.")


def renamed(text: str, name: str, plural: str) -> str:
    """Replace each animal or pet in a text, with its article, its case and its number."""
    text = _KEY.sub(lambda key: _with_checksum(name + key[1]), text)
    article = r"\1n\2" if name[0] in "aeiou" else r"\1\2"
    text = _ARTICLE.sub(article, text)

    def word(found: re.Match[str]) -> str:
        new = plural if found[0].lower().endswith("s") else name
        if found["upper"]:
            return new.upper()
        return new.capitalize() if found["title"] else new

    return _WORD.sub(word, text)


def _with_checksum(key: str) -> str:
    return key + api_key.checksum(key)


def _trimmed(file: str, text: str) -> str:
    """Take out of a file what is about this project alone."""
    if file == "Makefile":
        return re.sub(
            "# -- this repository's own.*?(?=.PHONY: clean)", "", text, flags=re.DOTALL
        )
    if file == "README.md":
        text = re.sub("## Make it your own.*?(?=\n## )", "", text, flags=re.DOTALL)
        lines = text.splitlines(keepends=True)
        return "".join(
            line for line in lines if not re.search("benchmarks|page.png", line)
        )
    if file == "tests/planted_faults.toml":
        head, *faults = text.split("[[fault]]\n")
        kept = [fault for fault in faults if "benchmarks" not in fault]
        return "[[fault]]\n".join([head, *kept])
    if file == "pyproject.toml":  # comments and docstrings may have longer words now
        return text.replace("max-line-length = 100", "max-line-length = 120")
    return text.replace(", `tests/benchmarks`", "")


def _unlink(document: Path) -> None:
    """Leave only the text of a document's links to files that were left out."""

    def kept(link: re.Match[str]) -> str:
        return link[0] if (document.parent / link[2]).exists() else link[1]

    document.write_text(_LINK.sub(kept, document.read_text("utf-8")), "utf-8")


def _finish(dest: Path, name: str) -> None:
    """Format the code, bring the lock file up to date, and begin a history."""
    ruff = f"{sys.prefix}/bin/ruff"
    for command in (
        [ruff, "check", "--quiet", "--fix", "."],
        [ruff, "format", "--quiet", "."],
        [f"{ROOT}/.tools/uv/bin/uv", "lock", "--quiet"],
        ["git", "init", "--quiet"],
        ["git", "add", "--all"],
        ["git", "commit", "--quiet", "--message", f"Start the {name} store"],
    ):
        subprocess.check_call(command, cwd=dest)


if __name__ == "__main__":
    typer.run(starter)
