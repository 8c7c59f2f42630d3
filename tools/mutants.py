"""Change the code by a program, a little at a time, and print what no test notices.

It runs in `.tools/mutmut`: `make mutants ONLY=layers SAMPLE=50`. Lines that end in
`# pragma: no mutate: reason` are left alone.
"""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from os.path import commonprefix
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from coverage import CoverageData
from libcst import SimpleString
from mutmut.configuration import config
from mutmut.mutation.file_mutation import create_mutations

_ROOT = Path.cwd()
_LINKED = (".venv", ".tools")
_PYTEST = [".venv/bin/python", "-m", "pytest", "-xq"]
_LIMIT = ["-o", "faulthandler_timeout=60", "-o", "faulthandler_exit_on_timeout=1"]
_RECORD = [
    "-m",
    "not slow",
    "-n",
    "auto",
    "--cov=.",
    "--cov-context=test",
    "--cov-report=",
    "--cov-fail-under=0",
]


class Change(NamedTuple):
    """A change of a file, and the tests of the line that it changes."""

    name: str
    file: Path
    text: str
    tests: set[str]


@contextmanager
def copy() -> Iterator[Path]:
    """Give a copy of the tree that may be changed."""
    with TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        # With the times of files, by which make knows that the tools are installed.
        shutil.copytree(_ROOT, tree, ignore=shutil.ignore_patterns(*_LINKED))
        for name in _LINKED:
            (tree / name).symlink_to(_ROOT / name)
        yield tree


def changes(file: Path, text: str, contexts: dict[int, list[str]]) -> Iterator[Change]:
    """Make the changes that mutmut does, but for strings."""
    tests = {
        # Without the case, which may not do as an argument.
        line: {name.split("[")[0].split("|")[0] for name in names if name}
        for line, names in contexts.items()
    }
    any_line = set().union(*tests.values())
    module, mutations, *_ = create_mutations("", text)
    for each in mutations:
        if not isinstance(each.original_node, SimpleString):
            changed = module.deep_replace(each.original_node, each.mutated_node).code
            same = commonprefix([text, changed])  # noqa: RUF071 - characters are meant
            line = same.count("\n") + 1
            name = f"{file}:{line}: {changed.splitlines()[line - 1 :][:1]}"
            # What stands outside functions runs for whichever test imports it first.
            own = tests.get(line) if each.contained_by_top_level_function else None
            yield Change(name, file, changed, own or any_line)


def is_noticed(change: Change) -> bool:
    """Tell whether a test fails, or hangs for a minute; print the change if none does."""
    command = [*_PYTEST, *_LIMIT, *change.tests]
    with copy() as tree:
        (tree / change.file).write_text(change.text, "utf-8")
        done = subprocess.run(command, cwd=tree, capture_output=True, check=False)
    if not done.returncode:
        print(change.name)
    return done.returncode != 0


def main(only: str, sample: str) -> None:
    """Print each change that no test notices, and the share of those that one does."""
    # Not the installed client.
    os.environ["PYTHONPATH"] = "clients/python/src"
    found: list[Change] = []
    with copy() as tree:
        subprocess.run([*_PYTEST, *_RECORD], cwd=tree, check=True)
        recorded = CoverageData(f"{tree}/.coverage")
        recorded.read()
        for folder in config().source_paths:
            for path in tree.glob(f"{folder}/**/*.py"):
                file = path.relative_to(tree)
                if only in str(file):
                    lines = recorded.contexts_by_lineno(str(path))
                    found += changes(file, path.read_text("utf-8"), lines)
    random.shuffle(found)
    chosen = found[: int(sample)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        noticed = sum(pool.map(is_noticed, chosen))
    print(noticed, "of", len(chosen), "changes were noticed")


main(*sys.argv[1:])
