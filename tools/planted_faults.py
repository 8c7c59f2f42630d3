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
from typing import Annotated, Any

import typer

from tools import ROOT

FAULTS = ROOT / "tests/planted_faults.toml"
_AT_ONCE, _TIMEOUT_S = 2, 900
_LINKED = (".git", ".venv", ".tools")
_LEFT_OUT = (*_LINKED, ".local*", ".aws-sam", "build", "__pycache__", ".*_cache")
_PYTEST = f"{sys.executable} -m pytest -x -q --tb=no -p no:cacheprovider "


def faults(
    only: Annotated[str, typer.Option(help="Those that contain this text.")] = "",
    sample: Annotated[int, typer.Option(help="So many, chosen by the date.")] = 0,
    source: Annotated[Path, typer.Option(help="Where they are listed.")] = FAULTS,
) -> None:
    """Print which test found each fault; exit with 1 if one survived, or its suite fails anyway."""
    chosen = [fault for fault in listed(source) if only in " ".join(fault.values())]
    if sample:
        chosen = random.Random(time.strftime("%F")).sample(chosen, sample)  # noqa: S311
    suites, found = sorted({fault["suite"] for fault in chosen}), 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        intact = pool.map(_run, [{"suite": suite} for suite in suites])
        without_fault = dict(zip(suites, intact, strict=True))
        print("| Fault | Found by | Seconds |\n|---|---|--:|", flush=True)
        for fault, (test, seconds) in zip(chosen, pool.map(_run, chosen), strict=True):
            failed, _ = without_fault[fault["suite"]]
            if not place(fault):
                failed = f"its text is not in {fault['file']} exactly once"
            found += bool(test and not failed)
            result = f"NOT PLANTED: {failed}" if failed else test or "SURVIVED"
            print(f"| {fault['name']} | {result} | {seconds:.0f} |", flush=True)
    print(f"\n{found} of {len(chosen)} planted faults were found.")
    raise typer.Exit(found < len(chosen) or not chosen)


def listed(source: Path = FAULTS) -> list[dict[str, str]]:
    """Read a list of faults."""
    faults: list[dict[str, str]] = tomllib.loads(source.read_text("utf-8"))["fault"]
    return faults


def place(fault: dict[str, str]) -> tuple[Path, re.Match[str]] | None:
    """Find a fault's text: in its file, or else in a file of the same kind in the same folder.

    White space is ignored, because a formatter changes it. None if the text is not there exactly
    once.
    """
    pattern = r"\s*".join(map(re.escape, "".join(fault["text"].split())))
    file = ROOT / fault["file"]
    others = filter(Path.is_file, sorted(file.parent.glob(f"*{file.suffix}")))
    for files in ([file], others):
        found: list[tuple[Path, re.Match[str]]] = []
        for path in files:
            found += [(path, m) for m in re.finditer(pattern, path.read_text("utf-8"))]
        if found:
            break
    return found[0] if len(found) == 1 else None


def _run(fault: dict[str, str]) -> tuple[str, float]:
    """Plant a fault, if there is one, and run its suite."""
    if "file" in fault and (found := place(fault)):
        path, match = found
        before, after = match.string[: match.start()], match.string[match.end() :]
        changed = before + fault["replacement"].strip() + after
        return first_failure(fault["suite"], path, changed)
    return first_failure(fault["suite"])


def first_failure(
    suite: str, changed: Path | None = None, text: str = ""
) -> tuple[str, float]:
    """Run a suite in a copy of the tree.

    Args:
        suite: Arguments of pytest, or a command that begins with `make`.
        changed: A file that has another text in the copy.
        text: That text.

    Returns:
        The first test that fails (empty if none does), and the seconds.
    """
    begin = time.monotonic()
    command = shlex.split(suite if suite.startswith("make ") else _PYTEST + suite)
    with tempfile.TemporaryDirectory() as folder:
        tree, left_out = Path(folder, "tree"), shutil.ignore_patterns(*_LEFT_OUT)
        shutil.copytree(ROOT, tree, ignore=left_out, symlinks=True)
        for name in _LINKED:
            (tree / name).symlink_to(ROOT / name)
        if changed:
            (tree / changed.relative_to(ROOT)).write_text(text, "utf-8")
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
