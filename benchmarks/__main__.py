"""Package, verify, count, and time in rounds; with `--quick`, count a cold start alone."""

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
from benchmarks.execution import Run, observe
from benchmarks.operations import GET, LIST_20, OPERATIONS, REFUSED, Operation
from benchmarks.packages import (
    BARE,
    BUILD,
    HERE,
    OURS,
    TITLES,
    MeasurementError,
    Package,
    build,
    build_runtime,
)

_COLD_ROUNDS, _WARM_ROUNDS = 20, 3
# Enough invocations for caches to fill, then enough to spread the collector's rare full passes
# over.
_WARM_UP, _WARM, _RECONNECTS = 20, 100, 10


def compare(openssl: str) -> dict[str, Any]:
    """Measure every variant; return what `results.json` holds."""
    packages = [build(variant) for variant in TITLES]
    for package in packages:
        _verify(package)
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


def _verify(package: Package) -> None:
    """Check that a framework does its work: authentication, a structured log line, metrics."""
    log = observe(package, LIST_20).log
    package.figures["cold_log_lines"] = len(log.splitlines())
    if package.variant in (OURS, "powertools", "fastapi"):
        observe(package, REFUSED)
        for text in ('"level"', "listPets", '"_aws"', '"Latency"'):
            if text not in log:
                raise MeasurementError(f"{package.variant} logs no {text}:\n{log}")


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
    package.figures["cold_instructions"] = _instructions(package)
    warm = {operation.name: _warm(package, operation) for operation in OPERATIONS}
    package.figures["warm_instructions"] = warm
    # The connection of the last request before those that count is closed, too.
    reconnect = _warm(package, GET, _RECONNECTS, _WARM_UP - 1)
    package.figures["reconnect_instructions"] = reconnect


def _time(packages: list[Package]) -> None:
    """Time cold starts and warm invocations; price what the latter take."""
    for package, runs in _take_turns(packages, LIST_20, 1, _COLD_ROUNDS):
        cold_ms = statistics.median(run.first_answer_ms for run in runs)
        package.figures.update(cold_ms=round(cold_ms, 1), peak_mb=0.0)
    for operation in OPERATIONS:
        turns = _take_turns(packages, operation, _WARM_UP + _WARM, _WARM_ROUNDS)
        for package, runs in turns:
            _time_warm(package, operation, runs)


def _time_warm(package: Package, operation: Operation, runs: list[Run]) -> None:
    us = [statistics.median(run.us[_WARM_UP:]) for run in runs]
    cpu_us = [statistics.mean(run.cpu_us[_WARM_UP:]) for run in runs]
    cpu = statistics.median(cpu_us)
    figures = {
        "warm_us": round(statistics.median(us), 1),
        "warm_cpu_us": round(cpu, 1),
        "log_bytes": runs[-1].log_bytes,
        "usd_per_million": prices.usd_per_million(runs[-1], operation, cpu),
    }
    for key, value in figures.items():
        package.figures.setdefault(key, {})[operation.name] = value
    peaks = [round(run.peak_mb, 1) for run in runs]
    package.figures["peak_mb"] = max(package.figures["peak_mb"], *peaks)


def _take_turns(
    packages: list[Package], operation: Operation, invocations: int, rounds: int
) -> list[tuple[Package, list[Run]]]:
    """Observe variants in rounds, so that a slow minute hits all of them."""
    runs = defaultdict(list)
    for _ in range(rounds):
        for package in packages:
            runs[package].append(observe(package, operation, invocations))
    return list(runs.items())


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
