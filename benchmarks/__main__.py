"""Package, measure and publish every variant.

With `--quick`, count a cold start of two alone; with `--publish`, publish results.json again.
"""

import datetime as dt
import json
import os
import platform
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.bill import bills
from benchmarks.cases import CASES, Case
from benchmarks.execution import observe
from benchmarks.packages import (
    BUILD,
    HERE,
    OURS,
    PEERS,
    RESULTS,
    TUNED,
    MeasurementError,
    build,
    build_runtime,
)
from benchmarks.store import fill
from tools import ROOT


def measure(
    variants: Iterable[str], cases: Sequence[Case], rounds: int
) -> dict[str, Any]:
    """Count and time each case with each variant; return the rows of `results.json`."""
    fill()
    packages = [build(variant) for variant in variants]
    pairs = [*product(cases, packages)]
    rows: dict[str, Any] = {package.name: defaultdict(dict) for package in packages}
    # As many at once as there are processors: no count depends on another process.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, package, counted in pool.map(_count, pairs):
            rows[package.name]["instructions"][case.title] = counted
    # In turn, so that a slow minute hits all of them.
    for _, (case, package) in product(range(rounds), pairs):
        run, row = observe(package, case, case.last), rows[package.name]
        spent = run.cpu_ms[case.last] - run.cpu_ms[case.before]
        ms = round(spent / case.counted, 2)
        row["cpu_ms"][case.title] = min(ms, row["cpu_ms"].get(case.title, ms))
        row["log_lines"][case.title] = run.log.count("\n") // case.last
        row["log_bytes"][case.title] = len(run.log) // case.last
        row["body_bytes"][case.title] = len(run.answer["body"])
    return rows


def _count(pair: tuple[Case, Path]) -> tuple[Case, Path, int]:
    """Count the instructions of an invocation; a cold start's begin with the process."""
    case, package = pair
    counted = observe(package, case, case.last, is_counted=True).instructions
    if case.before:
        counted -= observe(package, case, case.before, is_counted=True).instructions
    return case, package, round(counted / case.counted)


def describe(openssl: str) -> dict[str, Any]:
    """Say what a run measures, where and when."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    processor = cpuinfo.partition("model name\t: ")[2].partition("\n")[0]
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True)
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "commit": commit.strip(),
        "machine": f"{processor}, {os.cpu_count()} cores, {platform.platform()}",
        "load": round(os.getloadavg()[2], 1),
        "openssl": openssl,
        "python": platform.python_version(),
    }


def publish(results: dict[str, Any]) -> None:
    """Write results.json with the bill of the template as it stands, its tables and its charts."""
    results["bill"] = bills(results["rows"][OURS])
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    python = ROOT / ".tools/charts/bin/python"
    subprocess.run([python, HERE / "publish.py", HERE], check=True)


if __name__ == "__main__":
    if "--publish" in sys.argv:
        sys.exit(publish(json.loads(RESULTS.read_text())))
    if not shutil.which("valgrind"):
        sys.exit("The benchmark needs valgrind (Debian: apt-get install valgrind).")
    try:
        openssl = build_runtime()
        if "--quick" in sys.argv:
            print(json.dumps(measure([OURS, TUNED], CASES[:1], rounds=1)))
        else:
            rows = measure(PEERS, CASES, rounds=5)
            publish(describe(openssl) | {"rows": rows})
    except MeasurementError as error:
        sys.exit(str(error))
    finally:
        shutil.rmtree(BUILD, ignore_errors=True)
