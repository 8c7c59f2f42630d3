"""Plant the faults of tests/planted_faults.toml, one at a time, each in a copy of the tree."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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
        suite: Arguments of pytest, and perhaps `&&` and a command; or one that begins with `make`.
        file: The path, from the root, of the file that has the fault; empty for none.
        text: That file's text.
    """

    name: str
    suite: str
    file: str = ""
    text: str = ""


def faults(
    only: Annotated[str, typer.Option(help="Text of the name or file.")] = "",
    sample: Annotated[int, typer.Option(help="So many, chosen by the date.")] = 0,
    source: Annotated[Path, typer.Option(help="Where they are listed.")] = FAULTS,
) -> None:
    """Print each fault that no test finds; exit with 1 if there is one, or a suite fails anyway."""
    chosen = draw(listed(source, only), sample, time.strftime("%F"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        [*pool.map(check_intact, {Fault("", fault.suite) for fault in chosen})]
    judge(chosen)


def listed(source: Path = FAULTS, only: str = "") -> list[Fault]:
    """Read the faults whose name or file contains a text.

    White space is ignored in what a fault replaces, because a formatter changes it. One whose file
    is gone, or whose text is not in it exactly once, is left out.
    """
    found = []
    for fault in tomllib.loads(source.read_text("utf-8"))["fault"]:
        name, file, new = fault["name"], fault["file"], fault["replacement"].strip()
        if only in f"{name} {file}" and (ROOT / file).is_file():
            characters = map(re.escape, "".join(fault["text"].split()))
            intact = (ROOT / file).read_text("utf-8")
            before, *after = re.split(r"\s*".join(characters), intact)
            planted = before + new + "".join(after)
            if len(after) == 1:
                found.append(Fault(name, fault["suite"], file, planted))
    return found


def draw(found: list[Fault], sample: int, seed: str) -> list[Fault]:
    """Choose so many, the same ones for a seed; 0 for all."""
    count = min(sample or len(found), len(found))
    return random.Random(seed).sample(found, count)  # noqa: S311


def judge(found: list[Fault]) -> None:
    """Print the faults that no test finds, and the score; exit with 1 if there is one."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        count = sum(pool.map(_is_found, found))
    print(f"{count} of {len(found)} were found.")
    raise typer.Exit(count < len(found) or not found)


def _is_found(fault: Fault) -> bool:
    failed = failure(fault)
    if not failed:
        print(fault.name, flush=True)
    return bool(failed)


def check_intact(fault: Fault, **variables: str) -> None:
    """Exit with 1 if a suite fails without a fault, or with one that changes nothing."""
    if failed := failure(fault, **variables):
        print(f"{failed} fails without a fault.")
        raise typer.Exit(1)


def failure(fault: Fault, **variables: str) -> str:
    """Run a fault's suite in a copy of the tree that has it, and say how the suite fails, if so.

    Args:
        fault: What to plant.
        variables: For the suite's environment.

    Returns:
        The suite with its output, or nothing.
    """
    runner = "" if fault.suite.startswith("make ") else _PYTEST
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        left_out = shutil.ignore_patterns(*_LEFT_OUT)
        shutil.copytree(ROOT, tree, ignore=left_out, symlinks=True)
        for name in _LINKED:
            (tree / name).symlink_to(ROOT / name)
        if fault.file:
            (tree / fault.file).write_text(fault.text, "utf-8")
        # The installed packages are the original tree's.
        packages = f"{tree}/clients/python/src"
        variables |= {"PYTHONPATH": packages, "MAKEFLAGS": ""}
        with subprocess.Popen(
            ["bash", "-c", runner + fault.suite],
            cwd=tree,
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                output = "it took too long"
            finally:  # with what it has started
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    return f"{fault.suite}: {output}" if process.returncode else ""
