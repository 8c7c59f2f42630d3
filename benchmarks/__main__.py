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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
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

_ROUNDS = 5


def measure(openssl: str) -> dict[str, Any]:
    """Measure every variant; return what `results.json` holds."""
    packages = [build(variant) for variant in (OURS, *PEERS)]
    rows = count(packages, CASES)
    for case in CASES:
        # In turn, so that a slow minute hits all of them.
        rounds = [[_cpu_ms(each, case) for each in packages] for _ in range(_ROUNDS)]
        for row, times in zip(rows, zip(*rounds, strict=True), strict=True):
            row["cpu_ms"][case.title] = round(min(times), 2)
    cpuinfo = Path("/proc/cpuinfo").read_text()
    processor = cpuinfo.partition("model name\t: ")[2].partition("\n")[0]
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": f"{processor}, {os.cpu_count()} cores, {platform.platform()}",
        "load": round(os.getloadavg()[2], 1),
        "openssl": openssl,
        "python": platform.python_version(),
        "rows": rows,
    }


def publish(results: dict[str, Any]) -> None:
    """Write results.json with the bill of the template as it stands, its tables and its charts."""
    results["bill"] = bills(results["rows"][0])
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    python = ROOT / ".tools/charts/bin/python"
    subprocess.run([python, HERE / "publish.py", HERE], check=True)


def count(packages: list[Path], cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Measure what does not depend on the machine's load."""
    fill()
    # As many at once as there are processors: no count depends on another process.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(partial(_row, cases=cases), packages))


def _row(package: Path, cases: Sequence[Case]) -> dict[str, Any]:
    figures = ("instructions", "cpu_ms", "log_lines", "log_bytes", "body_bytes")
    row: dict[str, Any] = {figure: {} for figure in figures}
    for case in cases:
        row["instructions"][case.title] = _instructions(package, case)
        _, log, answer = observe(package, case, case.last)
        row["log_lines"][case.title] = log.count("\n") // case.last
        row["log_bytes"][case.title] = len(log) // case.last
        row["body_bytes"][case.title] = len(answer["body"])
    return {"variant": package.name, **row}


def _instructions(package: Path, case: Case) -> int:
    """Count the instructions of an invocation; a cold start's begin with the process."""
    counted = observe(package, case, case.last, is_counted=True).instructions
    if case.before:
        counted -= observe(package, case, case.before, is_counted=True).instructions
    return round(counted / case.counted)


def _cpu_ms(package: Path, case: Case) -> float:
    spent = observe(package, case, case.last).cpu_ms
    return (spent[case.last] - spent[case.before]) / case.counted


if __name__ == "__main__":
    if "--publish" in sys.argv:
        sys.exit(publish(json.loads(RESULTS.read_text())))
    if not shutil.which("valgrind"):
        sys.exit("The benchmark needs valgrind (Debian: apt-get install valgrind).")
    try:
        openssl = build_runtime()
        if "--quick" in sys.argv:
            print(json.dumps(count([build(OURS), build(TUNED)], CASES[:1])))
        else:
            publish(measure(openssl))
    except MeasurementError as error:
        sys.exit(str(error))
    finally:
        shutil.rmtree(BUILD, ignore_errors=True)
