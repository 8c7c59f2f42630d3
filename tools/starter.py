"""`make starter`: a copy of this tree as a service of one's own, with another resource's name."""

import re
import shutil
import subprocess
import sys
import tokenize
import tomllib
from pathlib import Path
from typing import Annotated

import typer
from animal_store import api_key

from tools import ROOT
from tools.planted_faults import place

_LEFT_OUT = re.compile(
    "benchmarks/|tests/benchmarks/|CHANGELOG|docs/examples/.*patch|docs/page.png|"
    "tests/docs/test_worked_examples|tools/starter.py|tests/starter/"
)
_CUT = {  # of a file, what is about this project alone
    "Makefile": r"# -- this repository's own.*?(?=\.PHONY: clean)",
    "README.md": r"## Make it your own.*?(?=## )|[^\n]*(benchmarks/|page\.png)[^\n]*\n",
    "CONTRIBUTING.md": ", `tests/benchmarks`",
}
_KEY = re.compile("animal(_(?:live|test)_[0-9A-Za-z]{32})[0-9A-Za-z]{6}")
_ARTICLE = re.compile(r"\b([Aa])n?( [`*]*(?:[Aa]nimal|[Pp]et)(?![a-z]))")
# A word of a sentence or a part of a name, but not of another word, such as "snippets".
_WORD = re.compile(
    "(?:[Aa]nimal|(?<![a-z])pet|Pet)s?(?![a-z])|(?:ANIMAL|(?<![A-Z])PET)S?(?![A-Z])"
)
_LINK = re.compile(r"\[([^]]+)\]\((?!http)([^)#]+)[^)]*\)")


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
        new = dest / renamed(file, name, plural)
        new.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / file).read_text("utf-8")
        if file == "uv.lock" or file.startswith("locks/"):  # full of digests
            text = text.replace("animal", name)
        elif file != "LICENSE":
            text = re.sub(_CUT.get(file, "(?!)"), "", text, flags=re.DOTALL)
            # Comments and docstrings have longer words now.
            text = text.replace("max-line-length = 100", "max-line-length = 120")
            text = renamed(text, name, plural)
        new.write_text(text, "utf-8")
        shutil.copymode(ROOT / file, new)
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

    def key(found: re.Match[str]) -> str:
        if not api_key.is_well_formed(found[0]):
            return found[0]
        body = name + found[1]
        return body + api_key.checksum(body)

    def word(found: re.Match[str]) -> str:
        old = found[0]
        new = plural if old[-1] in "sS" else name
        if old.isupper():
            return new.upper()
        return new.capitalize() if old[0].isupper() else new

    article = r"\1n\2" if name[0] in "aeiou" else r"\1\2"
    return _WORD.sub(word, _ARTICLE.sub(article, _KEY.sub(key, text)))


def _unlink(document: Path) -> None:
    """Leave only the text of a document's links to files that were left out."""

    def kept(link: re.Match[str]) -> str:
        return link[0] if (document.parent / link[2]).exists() else link[1]

    document.write_text(_LINK.sub(kept, document.read_text("utf-8")), "utf-8")


def _drop_faults(path: Path) -> None:
    """Drop the planted faults of what was left out, or whose text the formatter has changed."""
    head, *faults = path.read_text("utf-8").split("\n[[fault]]\n")
    kept = [head]
    for text in faults:
        (fault,) = tomllib.loads(f"[[fault]]\n{text}")["fault"]
        own = fault | {"file": f"{path.parents[1]}/{fault['file']}"}
        if not _LEFT_OUT.search(text) and place(own):
            kept.append(text)
    path.write_text("\n[[fault]]\n".join(kept), "utf-8")


def _finish(dest: Path, name: str) -> None:
    """Format the code, bring the lock file up to date, and begin a history."""
    ruff = f"{sys.prefix}/bin/ruff"
    subprocess.check_call([ruff, "check", "--quiet", "--fix"], cwd=dest)
    subprocess.check_call([ruff, "format", "--quiet"], cwd=dest)
    _drop_faults(dest / "tests/planted_faults.toml")
    for command in (
        [f"{ROOT}/.tools/uv/bin/uv", "lock", "--quiet"],
        ["git", "init", "--quiet"],
        ["git", "add", "--all"],
        ["git", "commit", "--quiet", "--message", f"Start the {name} store"],
    ):
        subprocess.check_call(command, cwd=dest)


if __name__ == "__main__":
    typer.run(starter)
