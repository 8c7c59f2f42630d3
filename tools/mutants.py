"""Change the code by a program, one small change at a time; each must make a test fail."""

import difflib
import json
import os
import random
import shlex
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from tools import ROOT
from tools.planted_faults import first_failure

_MUTMUT = ROOT / ".tools/mutmut/bin/python"
_ACCEPTED = ROOT / "tests/accepted_mutants.toml"
_REQUESTS = "tests/unit tests/reliability/test_faults.py tests/contract"
_STACK = "tests/template tests/unit/test_roles.py tests/deployment -m 'not slow'"
# What may be changed, and the tests that must notice.
_SUITES = {
    "layers/common/animal_store": _REQUESTS,
    "functions": _REQUESTS,
    "clients/python/src": "tests/clients/test_client.py",
    "packages/lambda_local/src": "packages/lambda_local/tests -m 'not slow'",
    "tools/deployment": "tests/deployment -m 'not slow'",
    "tools/admin": "tests/admin",
    "tools/key_table.py": "tests/admin",
    "template.yaml": _STACK,
    "bootstrap.yaml": _STACK,
    "samconfig.toml": _STACK,
    ".github/workflows": "tests/deployment/test_workflows.py",
}


class Mutant(NamedTuple):
    """A file with one change.

    Args:
        file: The file.
        suite: Arguments of pytest: the tests that must notice.
        text: The changed file.
    """

    file: Path
    suite: str
    text: str

    def diff(self) -> list[str]:
        """Return the lines that go, with a minus, and those that come, with a plus."""
        before = self.file.read_text("utf-8").splitlines()
        lines = difflib.unified_diff(before, self.text.splitlines(), lineterm="", n=0)
        return [line for line in list(lines)[2:] if not line.startswith("@@")]


def mutants(
    only: Annotated[str, typer.Option(help="A file or folder; empty for all.")] = "",
    sample: Annotated[int, typer.Option(help="So many, drawn by SEED.")] = 0,
    seed: Annotated[int, typer.Option(help="Another draw.")] = 0,
) -> None:
    """Print each change that no test notices, and the score; exit with 1 if one is new."""
    made = [mutant for file in _files(only) for mutant in _made(file)]
    if sample:
        made = random.Random(seed).sample(made, min(sample, len(made)))  # noqa: S311
    accepted, killed, new = _accepted(), 0, 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, (test, _) in zip(made, pool.map(_judge, made), strict=True):
            killed += bool(test)
            if not test:
                name, diff = str(mutant.file.relative_to(ROOT)), mutant.diff()
                reason = accepted.get((name, diff[-1][1:].strip()), "")
                new += not reason
                print("\n".join([name, *diff, f"  {reason or 'SURVIVED'}"]), flush=True)
    judged = killed + new
    print(
        f"\n{killed} of {judged} were noticed, {len(made) - judged} make no difference."
    )
    raise typer.Exit(bool(new) or not made)


def _files(only: str) -> list[Path]:
    tracked = subprocess.run(
        ["git", "ls-files", *_SUITES],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    names = [name for name in tracked.stdout.split() if name.startswith(only)]
    kinds = {".py", ".yaml", ".yml", ".toml"}
    return [ROOT / name for name in names if Path(name).suffix in kinds]


def _made(file: Path) -> list[Mutant]:
    name = str(file.relative_to(ROOT))
    area = next(area for area in _SUITES if name.startswith(area))
    command = [_MUTMUT, ROOT / "tools/mutations.py", file]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if file.suffix == ".py":
        run = _lines_run(area).get(name, set())
        found = [(line, text) for line, text in found if line in run]
    return [Mutant(file, _SUITES[area], text) for _, text in found]


@cache
def _lines_run(area: str) -> dict[str, set[int]]:
    """Run the tests of an area, which must pass, and return the lines that they run, by file."""
    report = ROOT / ".tools/mutants.json"
    folder = Path(area).parent if area.endswith(".py") else area
    coverage = [f"--cov={folder}", f"--cov-report=json:{report}", "--cov-fail-under=0"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", *coverage]
    command += shlex.split(_SUITES[area])
    subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)
    files = json.loads(report.read_text("utf-8"))["files"]
    return {name: set(files[name]["executed_lines"]) for name in files}


def _judge(mutant: Mutant) -> tuple[str, float]:
    return first_failure(mutant.suite, mutant.file, mutant.text)


def _accepted() -> dict[tuple[str, str], str]:
    """Return why a change makes no difference, by file and changed line."""
    listed = tomllib.loads(_ACCEPTED.read_text("utf-8")).get("mutant", [])
    return {(each["file"], each["line"]): each["reason"] for each in listed}
