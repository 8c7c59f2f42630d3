"""Package, verify, count and time; with `--quick`, count a cold start alone."""

import datetime as dt
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import stamina

from benchmarks import prices, report
from benchmarks.execution import observe
from benchmarks.operations import GET, LIST_20, OPERATIONS, REFUSED, Operation
from benchmarks.packages import (
    BARE,
    BARE_ON_RUNTIME,
    BUILD,
    EMPTY,
    HERE,
    OURS,
    TITLES,
    MeasurementError,
    Package,
    build,
    build_runtime,
)

# Enough invocations for caches to fill, then enough to spread the collector's rare full passes
# over.
_WARM_UP, _WARM, _RECONNECTS = 20, 100, 10


def compare(openssl: str) -> dict[str, Any]:
    """Measure every variant; return what `results.json` holds."""
    packages = [build(variant) for variant in TITLES]
    for package in packages:
        if package.variant not in (EMPTY, BARE, BARE_ON_RUNTIME):
            observe(package, REFUSED)
    # As many at once as there are processors: no count depends on another process.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_count, packages))
    _time(packages)
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    valgrind = subprocess.check_output(["valgrind", "--version"], text=True)
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {system}",
        "openssl": openssl,
        "versions": {
            "python": platform.python_version(),
            "valgrind": valgrind.strip(),
            "boto3": boto3.__version__,
        },
        "prices": {"date": prices.DATE, "region": prices.REGION},
        "rows": [package.figures for package in packages],
    }


def cold_ratio() -> dict[str, Any]:
    """Count the instructions of a cold start, ours and bare, and the lines that ours logs."""
    ours, bare = build(OURS), build(BARE)
    with ThreadPoolExecutor() as pool:
        counts = list(pool.map(_instructions, [ours, bare]))
    lines = len(observe(ours, LIST_20).log.splitlines())
    return {"ratio": round(counts[0] / counts[1], 3), "lines": lines, "counts": counts}


# Lambda's runtime client gives up connecting after a second, which a busy machine may need.
@stamina.retry(on=MeasurementError, attempts=3, timeout=None)
def _instructions(
    package: Package,
    operation: Operation = LIST_20,
    invocations: int = 1,
    kept: int = sys.maxsize,
) -> int:
    """Count the instructions from the start of the process until it has answered that often."""
    run = observe(package, operation, invocations, kept=kept, is_counted=True)
    return run.instructions


def _warm(
    package: Package, operation: Operation, more: int = _WARM, kept: int = sys.maxsize
) -> int:
    """Count the instructions of one more invocation of a function that has answered some."""
    before = _instructions(package, operation, _WARM_UP, kept)
    after = _instructions(package, operation, _WARM_UP + more, kept)
    return round((after - before) / more)


def _count(package: Package) -> None:
    warm, dollars, log_bytes = {}, {}, {}
    for operation in OPERATIONS:
        count = _warm(package, operation)
        run = observe(package, operation, invocations=2)
        warm[operation.name] = count
        dollars[operation.name] = prices.usd_per_million(run, operation, count)
        log_bytes[operation.name] = run.log_bytes
    package.figures.update(
        cold_instructions=_instructions(package),
        warm_instructions=warm,
        # The connection of the last request before those that count is closed, too.
        reconnect_instructions=_warm(package, GET, _RECONNECTS, _WARM_UP - 1),
        log_bytes=log_bytes,
        usd_per_million=dollars,
    )


def _time(packages: list[Package]) -> None:
    """Time cold starts in rounds, so that a slow minute hits all variants."""
    runs = defaultdict(list)
    for _ in range(20):
        for package in packages:
            runs[package].append(observe(package, LIST_20))
    for package in packages:
        cold_ms = statistics.median(run.first_answer_ms for run in runs[package])
        peak_mb = max(run.peak_mb for run in runs[package])
        package.figures.update(cold_ms=round(cold_ms, 1), peak_mb=round(peak_mb, 1))
        lines = runs[package][0].log.splitlines()
        package.figures["cold_log_lines"] = len(lines)


if __name__ == "__main__":
    if not shutil.which("valgrind"):
        sys.exit("The benchmark needs valgrind (Debian: apt-get install valgrind).")
    try:
        openssl = build_runtime()
        if "--quick" in sys.argv:
            print(json.dumps(cold_ratio()))
        else:
            figures = compare(openssl)
            (HERE / "results.json").write_text(json.dumps(figures, indent=1) + "\n")
            (HERE / "RESULTS.md").write_text(report.markdown(figures))
    except MeasurementError as error:
        sys.exit(str(error))
    finally:
        shutil.rmtree(BUILD, ignore_errors=True)
