"""Plant the faults of tests/planted_faults.toml, one at a time, each in a copy of the tree."""

import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from tools import ROOT

FAULTS = ROOT / "tests/planted_faults.toml"
_TIMEOUT_S = 900
_LINKED = (".git", ".venv", ".tools")
_LEFT_OUT = (*_LINKED, ".local*", ".aws-sam", "build", "__pycache__", ".*_cache")
_PYTEST = f"{sys.executable} -m pytest -x -q --tb=no -p no:cacheprovider "


class Fault(NamedTuple):
    """A fault.

    Args:
        name: What is printed if it survives.
        suite: Arguments of pytest, or a command that begins with `make`.
        file: The path, from the root, of the file that has the fault.
        text: That file's text.
    """

    name: str
    suite: str
    file: str
    text: str


def faults(
    only: Annotated[str, typer.Option(help="Text of the name or file.")] = "",
    sample: Annotated[int, typer.Option(help="So many, chosen by the date.")] = 0,
    source: Annotated[Path, typer.Option(help="Where they are listed.")] = FAULTS,
) -> None:
    """Print each fault that no test finds; exit with 1 if there is one, or a suite fails anyway."""
    chosen = listed(source, only)
    if sample:
        count = min(sample, len(chosen))
        chosen = random.Random(time.strftime("%F")).sample(chosen, count)  # noqa: S311
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        [*pool.map(check_intact, {fault.suite for fault in chosen})]
    judge(chosen)


def listed(source: Path = FAULTS, only: str = "") -> list[Fault]:
    """Read the faults whose name or file contains a text.

    What a fault replaces must be in its file exactly once; white space is ignored, because a
    formatter changes it. A fault whose text is lost has none, and counts as not found.
    """
    found = []
    for fault in tomllib.loads(source.read_text("utf-8"))["fault"]:
        if only not in f"{fault['name']} {fault['file']}":
            continue
        characters = map(re.escape, "".join(fault["text"].split()))
        pattern = re.compile(r"\s*".join(characters))
        before, *after = pattern.split((ROOT / fault["file"]).read_text("utf-8"))
        name, text = fault["name"], ""
        if len(after) == 1:
            text = before + fault["replacement"].strip() + after[0]
        else:
            name += ": its text is not there exactly once"
        found.append(Fault(name, fault["suite"], fault["file"], text))
    return found


def judge(found: list[Fault]) -> None:
    """Print the faults that no test finds, and the score; exit with 1 if there is one."""
    survived = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for fault, test in zip(found, pool.map(_found_by, found), strict=True):
            if not test:
                survived += 1
                print(fault.name, flush=True)
    print(f"{len(found) - survived} of {len(found)} were found.")
    raise typer.Exit(survived > 0 or not found)


def _found_by(fault: Fault) -> str:
    return first_failure(fault.suite, fault.file, fault.text) if fault.text else ""


def check_intact(suite: str, file: str = "", text: str = "", **own: str) -> None:
    """Exit with 1 if a suite fails without a fault; arguments are those of `first_failure`."""
    if failed := first_failure(suite, file, text, **own):
        print(f"{failed} fails without a fault.")
        raise typer.Exit(1)


def first_failure(suite: str, file: str = "", text: str = "", **variables: str) -> str:
    """Return the first test of a suite that fails in a copy of the tree, or the suite; else "".

    Args:
        suite: Arguments of pytest, or a command that begins with `make`.
        file: A file that has another text in the copy.
        text: That text.
        variables: For the suite's environment.
    """
    command = shlex.split(suite if suite.startswith("make ") else _PYTEST + suite)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        left_out = shutil.ignore_patterns(*_LEFT_OUT)
        shutil.copytree(ROOT, tree, ignore=left_out, symlinks=True)
        for name in _LINKED:
            (tree / name).symlink_to(ROOT / name)
        if file:
            (tree / file).write_text(text, "utf-8")
        # The installed packages are the original tree's.
        packages = f"{tree}/clients/python/src:{tree}/packages/lambda_local/src"
        own = {"PYTHONPATH": packages, "MAKEFLAGS": "", **variables}
        try:
            done = subprocess.run(
                command,
                cwd=tree,
                env=os.environ | own,
                check=False,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:  # a suite that hangs has found the fault
            return f"{suite}: no end"
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return [*failed, suite][0] if done.returncode else ""
