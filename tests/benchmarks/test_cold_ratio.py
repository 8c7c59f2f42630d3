"""A cold start stays as fast as published: in instructions, which no noise reaches, compared with the bare handler."""

import json
import platform
import shutil
import subprocess

import pytest

from tools import ROOT

TOLERANCE = 1.05


def missing() -> str | None:
    """Say what of the benchmark's needs this machine lacks."""
    if platform.system() != "Linux":
        return "the benchmark needs Linux"
    if shutil.which("valgrind") is None:
        return "valgrind is absent"
    python = subprocess.run([ROOT / "scripts/find-python"], check=True, capture_output=True, text=True).stdout.strip()
    version = subprocess.run([python, "-V"], check=True, capture_output=True, text=True).stdout.split()[1]
    return None if version.startswith("3.13.") else f"the benchmark needs CPython 3.13, found {version}"


def test_cold_start_takes_at_most_5_percent_more_than_published() -> None:
    if reason := missing():
        pytest.skip(reason)
    rows = json.loads((ROOT / "benchmarks/results.json").read_text())["rows"]
    cold = {row["variant"]: row["cold_instructions"] for row in rows if row["packaging"] == "precompiled"}

    done = subprocess.run(
        ["make", "--no-print-directory", "bench", "QUICK=1"], cwd=ROOT, check=False, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    counted = json.loads(done.stdout.splitlines()[-1])
    assert counted["ratio"] <= TOLERANCE * cold["ours"] / cold["bare"], counted
