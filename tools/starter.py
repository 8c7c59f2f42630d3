"""`make starter`: a copy of this tree as a service of one's own, with another resource's name."""

import base64
import builtins
import hashlib
import keyword
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import ROOT
from tools.git import git

# These are copied as they are: the names of animals are none of their words, but digests are.
_COPIED = ("LICENSE", "tools/locks/")
# Measurements of this service, which are not the new one's.
_LEFT_OUT = ("tools/benchmarks/RESULTS.md",)
# These match a word of a sentence and a part of a name, but nothing of "snippets".
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
    if dest.exists():
        sys.exit(f"{dest}: exists already.")
    try:
        author = _author()
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder, "tree")
            _write(tree, name)
            _finish(tree, name, author)
            dest.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(tree, dest)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error}\nIt says why above. Nothing was written to {dest}.")
    print(f"A service of your own: cd {shlex.quote(str(dest))} && make run")


def _author() -> dict[str, str]:
    """Return who commits, as git's variables; git fails if it does not know the name."""
    command = ["git", "var", "GIT_AUTHOR_IDENT"]
    identity = subprocess.check_output(command, cwd=ROOT, text=True)
    author, _, email = identity.rsplit(">", 1)[0].partition(" <")
    variables = {}
    for role in ("AUTHOR", "COMMITTER"):
        variables[f"GIT_{role}_NAME"] = author
        variables[f"GIT_{role}_EMAIL"] = email
    return variables


def _write(tree: Path, name: str) -> None:
    """Write each file that git has of this tree, with the other name."""
    uses = re.compile(rf"(?m)((def|class) |^from (\S+\.)?|import (.*, )?){name}s?\b")
    for file in git(ROOT, "ls-files", "-z").decode().split("\0"):
        if not file or file in _LEFT_OUT:
            continue
        new = tree / renamed(file, name)
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, new)
        if file.startswith(_COPIED):
            continue
        text = new.read_text("utf-8")
        if file.endswith(".py") and uses.search(text):
            sys.exit(f"{name}: the code uses this name, in {file}.")
        text = text.replace(cursor("pet"), cursor(name))
        new.write_text(renamed(text, name), "utf-8")


def cursor(partition: str) -> str:
    """Return the cursor that `events/` has: its checksum has the name of the list (paging.py)."""
    position = (2).to_bytes(8)
    scope = f"staging/{partition}?".encode()
    checksum = hashlib.blake2b(position + scope, digest_size=10).digest()
    return base64.urlsafe_b64encode(position + checksum).decode()


def _finish(tree: Path, name: str, author: dict[str, str]) -> None:
    """Format the new tree, lock it under its own name, and commit it."""
    # A name of twelve letters makes lines longer than this tree's limit.
    settings = tree / "pyproject.toml"
    limits = settings.read_text("utf-8").replace(
        "max-line-length = 100", "max-line-length = 160"
    )
    settings.write_text(limits, "utf-8")
    readme, handler = tree / "README.md", tree / f"functions/list_{name}s/app.py"
    shown = _code(handler)
    ruff, uv = f"{sys.prefix}/bin/ruff", f"{ROOT}/.tools/uv/bin/uv"
    for command in (
        [ruff, "check", "--quiet", "--fix"],
        [ruff, "format", "--quiet"],
        [uv, "lock", "--quiet"],
    ):
        subprocess.run(command, cwd=tree, check=True)
    # Imports of another name may have another order.
    text = readme.read_text("utf-8").replace(shown, _code(handler))
    readme.write_text(text, "utf-8")
    git(tree, "init", "--quiet", "--initial-branch", "main")
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message", "Start the service", **author)


def _code(module: Path) -> str:
    """Return a module from its first import on, as README shows it."""
    text = module.read_text("utf-8")
    return text[text.index("\nfrom ") :]


def renamed(text: str, name: str) -> str:
    """Replace each animal or pet in a text, with its article and its case."""
    for pattern, case in _WORDS:
        text = re.sub(pattern, case(name), text)
    article = r"\1n\2" if name[0] in "aeiou" else r"\1\2"
    return re.sub(rf"(?i)\b(a)n?( [`*]*{name})", article, text)


if __name__ == "__main__":
    starter(sys.argv[1], Path(sys.argv[2]).expanduser())
