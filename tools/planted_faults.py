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
from typing import Any

import typer

from tools import ROOT

_AT_ONCE, _TIMEOUT_S = 2, 900
_LINKED = (".git", ".venv", ".tools")
_LEFT_OUT = (*_LINKED, ".local*", ".aws-sam", "build", "__pycache__", ".*_cache")
_PYTEST = f"{sys.executable} -m pytest -x -q --tb=no -p no:cacheprovider "


def faults(only: str = "", sample: int = 0) -> None:
    """Print which test found each fault; exit with 1 if one survived, or its suite fails anyway."""
    text = (ROOT / "tests/planted_faults.toml").read_text("utf-8")
    listed = tomllib.loads(text)["fault"]
    chosen = [fault for fault in listed if only in " ".join(fault.values())]
    if sample:
        chosen = random.Random(time.strftime("%F")).sample(chosen, sample)  # noqa: S311
    gone = [fault["name"] for fault in chosen if _text(fault).count(fault["text"]) != 1]
    if gone:
        sys.exit("\n".join(["their text is not in the file exactly once:", *gone]))
    suites, found = sorted({fault["suite"] for fault in chosen}), 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        intact = pool.map(_run, [{"suite": suite} for suite in suites])
        without_fault = dict(zip(suites, intact, strict=True))
        print("| Fault | Found by | Seconds |\n|---|---|--:|", flush=True)
        for fault, (test, seconds) in zip(chosen, pool.map(_run, chosen), strict=True):
            failed, _ = without_fault[fault["suite"]]
            found += bool(test and not failed)
            result = f"FAILS WITHOUT IT: {failed}" if failed else test or "SURVIVED"
            print(f"| {fault['name']} | {result} | {seconds:.0f} |", flush=True)
    print(f"\n{found} of {len(chosen)} planted faults were found.")
    raise typer.Exit(found < len(chosen) or not chosen)


def _text(fault: dict[str, str]) -> str:
    return (ROOT / fault["file"]).read_text("utf-8")


def _run(fault: dict[str, str]) -> tuple[str, float]:
    """Run a fault's suite; return the first test that fails (empty if none), and the seconds."""
    suite, begin = fault["suite"], time.monotonic()
    command = shlex.split(suite if suite.startswith("make ") else _PYTEST + suite)
    with tempfile.TemporaryDirectory() as folder:
        tree, left_out = Path(folder, "tree"), shutil.ignore_patterns(*_LEFT_OUT)
        shutil.copytree(ROOT, tree, ignore=left_out, symlinks=True)
        for name in _LINKED:
            (tree / name).symlink_to(ROOT / name)
        if "file" in fault:
            changed = _text(fault).replace(fault["text"], fault["replacement"])
            (tree / fault["file"]).write_text(changed, "utf-8")
        # The installed packages are the original tree's.
        packages = f"{tree}/clients/python/src:{tree}/packages/lambda_local/src"
        own = os.environ | {"PYTHONPATH": packages, "MAKEFLAGS": ""}
        pipe: Any = {"capture_output": True, "text": True, "timeout": _TIMEOUT_S}
        try:
            done = subprocess.run(command, cwd=tree, env=own, check=False, **pipe)
        except subprocess.TimeoutExpired:  # a suite that hangs has found the fault
            return f"{suite}: no end", time.monotonic() - begin
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    first = [*failed, suite][0] if done.returncode else ""
    return first, time.monotonic() - begin
