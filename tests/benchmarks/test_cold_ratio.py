"""A cold start does not become dearer than a hand-written handler's: in instructions, which no noise reaches."""

import json
import platform
import shutil
import subprocess

import pytest

from tools import ROOT

LIMIT = 1.1


def missing() -> str | None:
    """Say what of the benchmark's needs this machine lacks."""
    if platform.system() != "Linux":
        return "the benchmark needs Linux"
    if shutil.which("valgrind") is None:
        return "valgrind is absent"
    python = subprocess.run([ROOT / "scripts/find-python"], check=True, capture_output=True, text=True).stdout.strip()
    version = subprocess.run([python, "-V"], check=True, capture_output=True, text=True).stdout.split()[1]
    return None if version.startswith("3.13.") else f"the benchmark needs CPython 3.13, found {version}"


def test_a_cold_start_costs_at_most_a_tenth_more_than_the_bare_handlers() -> None:
    if reason := missing():
        pytest.skip(reason)

    done = subprocess.run(
        ["make", "--no-print-directory", "bench", "QUICK=1"], cwd=ROOT, check=False, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    counted = json.loads(done.stdout.splitlines()[-1])
    assert counted["ratio"] <= LIMIT, counted
