"""Package, verify, count and time; with `--quick`, count a cold start alone."""

import datetime as dt
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import stamina

from benchmarks import prices, report
from benchmarks.execution import Run, observe
from benchmarks.operations import GET, LIST_20, OPERATIONS, REFUSED, Operation
from benchmarks.packages import (
    BARE,
    BARE_ON_RUNTIME,
    BUILD,
    EMPTY,
    HERE,
    OURS,
    PEERS,
    TITLES,
    MeasurementError,
    Package,
    build,
    build_runtime,
)

# Enough invocations for caches to fill, then enough to spread the collector's rare full passes
# over.
_WARM_UP, _WARM, _RECONNECTS = 20, 100, 40
_COLD_RUNS, _WARM_ROUNDS = 20, 3


def compare(openssl: str) -> dict[str, Any]:
    """Measure every variant; return what `results.json` holds."""
    packages = [build(variant) for variant in TITLES]
    for package in packages:
        if package.variant not in (EMPTY, BARE, BARE_ON_RUNTIME):
            _verify(package)
    # As many at once as there are processors: no count depends on another process.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_count, packages))
    _time_cold(packages)
    for operation in OPERATIONS:
        _time_warm(packages, operation)
    processor = re.findall("model name\\s*: (.+)", Path("/proc/cpuinfo").read_text())[0]
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    valgrind = subprocess.check_output(["valgrind", "--version"], text=True)
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": f"{processor}, {platform.machine()}, {os.cpu_count()} cores, {system}",
        "openssl": openssl,
        "versions": {
            "python": platform.python_version(),
            "valgrind": valgrind.strip(),
            **_pinned(),
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
    """Count the instructions from the process's start until it has answered that many times."""
    run = observe(package, operation, invocations, kept=kept, is_counted=True)
    return run.instructions


def _warm(
    package: Package, operation: Operation, more: int = _WARM, kept: int = sys.maxsize
) -> int:
    """Count the instructions of one more invocation of a function that has answered some."""
    before = _instructions(package, operation, _WARM_UP, kept)
    after = _instructions(package, operation, _WARM_UP + more, kept)
    return round((after - before) / more)


def _verify(package: Package) -> None:
    """Check that a framework does its work: authentication, a structured log line, metrics."""
    observe(package, REFUSED)
    log = observe(package, LIST_20).log
    if not all(text in log for text in ('"level"', "listPets", '"_aws"', '"Latency"')):
        raise MeasurementError(f"{package.variant} logs no line or no metrics:\n{log}")


def _pinned() -> dict[str, str]:
    """Return the versions of all libraries that any variant has."""
    locks = [HERE / "runtime.txt", *PEERS.glob("*/requirements.txt")]
    text = "".join(lock.read_text() for lock in locks)
    return dict(sorted(re.findall(r"(?m)^([a-z0-9._-]+)==(\S+)", text)))


def _count(package: Package) -> None:
    warm, dollars, log_bytes = {}, {}, {}
    for operation in OPERATIONS:
        count = _warm(package, operation)
        run = observe(package, operation, invocations=2)
        warm[operation.name] = count
        dollars[operation.name] = prices.usd_per_million(run, operation, count)
        log_bytes[operation.name] = run.log_bytes
    cold = sorted(_instructions(package) for _ in range(3))  # it hardly varies
    package.figures.update(
        cold_instructions=cold[1],
        cold_instructions_range=[cold[0], cold[2]],
        warm_instructions=warm,
        # The connection of the last request before the counted ones is closed, too.
        reconnect_instructions=_warm(package, GET, _RECONNECTS, _WARM_UP - 1),
        log_bytes=log_bytes,
        usd_per_million=dollars,
    )


def _take_turns(
    packages: list[Package], operation: Operation, invocations: int, rounds: int
) -> dict[Package, list[Run]]:
    """Observe variants in rounds, so that a slow minute hits all of them."""
    runs = defaultdict(list)
    for _ in range(rounds):
        for package in packages:
            runs[package].append(observe(package, operation, invocations))
    return runs


def _time_cold(packages: list[Package]) -> None:
    for package, runs in _take_turns(packages, LIST_20, 1, _COLD_RUNS).items():
        first, median, third = statistics.quantiles(
            [run.first_answer_ms for run in runs], n=4
        )
        package.figures.update(
            cold_ms=round(median, 1),
            cold_ms_quartiles=[round(first, 1), round(third, 1)],
            cold_log_lines=len(runs[0].log.splitlines()),
            peak_mb=round(max(run.peak_mb for run in runs), 1),
        )


def _time_warm(packages: list[Package], operation: Operation) -> None:
    turns = _take_turns(packages, operation, _WARM_UP + _WARM, _WARM_ROUNDS)
    for package, runs in turns.items():
        us = statistics.median(statistics.median(run.us[_WARM_UP:]) for run in runs)
        package.figures.setdefault("warm_us", {})[operation.name] = round(us, 1)


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
