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
from queue import SimpleQueue

import typer

from tools import ROOT

_AT_ONCE, _TIMEOUT_S = 2, 900
_LINKED = (".git", ".venv", ".tools")
_LEFT_OUT = (*_LINKED, ".local*", ".aws-sam", "build", "__pycache__", ".*_cache")
_PYTEST = f"{sys.executable} -m pytest -x -q --tb=no -p no:cacheprovider "
_idle_trees: "SimpleQueue[Path]" = SimpleQueue()


def faults(only: str = "", sample: int = 0) -> None:
    """Print which test found each fault; exit with 1 if one survived, or its suite fails anyway."""
    listed = tomllib.loads(_read("tests/planted_faults.toml"))["fault"]
    chosen = [fault for fault in listed if only in " ".join(fault.values())]
    if sample:
        chosen = random.Random(time.strftime("%F")).sample(chosen, sample)  # noqa: S311
    gone = [
        fault["name"]
        for fault in chosen
        if _read(fault["file"]).count(fault["text"]) != 1
    ]
    if gone or not chosen:
        sys.exit("\n".join(["their text is not in the file exactly once:", *gone]))
    suites, found = sorted({fault["suite"] for fault in chosen}), 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(_AT_ONCE) as pool:
        for number in range(_AT_ONCE):
            tree, left_out = (
                Path(folder) / str(number),
                shutil.ignore_patterns(*_LEFT_OUT),
            )
            shutil.copytree(ROOT, tree, ignore=left_out, symlinks=True)
            for name in _LINKED:
                (tree / name).symlink_to(ROOT / name)
            _idle_trees.put(tree)
        without_fault = dict(zip(suites, pool.map(_run, suites), strict=True))
        print("| Fault | Found by | Seconds |\n|---|---|--:|", flush=True)
        runs = pool.map(
            lambda f: _run(f["suite"], f["file"], f["text"], f["replacement"]), chosen
        )
        for fault, (test, seconds) in zip(chosen, runs, strict=True):
            fails_anyway, _ = without_fault[fault["suite"]]
            found += bool(test and not fails_anyway)
            result = (
                f"FAILS WITHOUT IT: {fails_anyway}"
                if fails_anyway
                else test or "SURVIVED"
            )
            print(f"| {fault['name']} | {result} | {seconds:.0f} |", flush=True)
    print(f"\n{found} of {len(chosen)} planted faults were found.")
    raise typer.Exit(found < len(chosen))


def _read(file: str) -> str:
    return (ROOT / file).read_text("utf-8")


def _run(
    suite: str, file: str = "README.md", text: str = "", replacement: str = ""
) -> tuple[str, float]:
    """Return the first test that fails once a text is changed, empty if none does, and seconds."""
    tree, begin = _idle_trees.get(), time.monotonic()
    # The installed packages are the original tree's, and bytecode could be that of another fault.
    own = {
        "PYTHONPATH": f"{tree}/clients/python/src:{tree}/packages/lambda_local/src",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment = {
        name: value for name, value in os.environ.items() if "MAKE" not in name
    } | own
    command = shlex.split(suite if suite.startswith("make ") else _PYTEST + suite)
    try:
        if text:
            (tree / file).write_text(_read(file).replace(text, replacement), "utf-8")
        done = subprocess.run(command, cwd=tree, env=environment, check=False,
                              capture_output=True, text=True, timeout=_TIMEOUT_S)  # fmt: skip
    except subprocess.TimeoutExpired:  # a suite that hangs has found the fault
        return f"{suite}: no end", time.monotonic() - begin
    finally:
        shutil.copy2(ROOT / file, tree / file)
        _idle_trees.put(tree)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return ([*failed, suite][0] if done.returncode else ""), time.monotonic() - begin
