"""The whole comparison in one run: package, verify, count, time in interleaved rounds."""

import datetime as dt
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import stamina

from benchmarks import prices
from benchmarks.execution import VALGRIND, Run, observe
from benchmarks.operations import GET, LIST_20, OPERATIONS, REFUSED, Operation
from benchmarks.packages import (
    BARE,
    HERE,
    OURS,
    PEERS,
    TITLES,
    MeasurementError,
    Package,
    build,
)

COLD_RUNS = int(os.environ.get("COLD_RUNS", "20"))
WARM_ROUNDS = int(os.environ.get("WARM_ROUNDS", "3"))

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
    _time_cold(packages)
    for operation in OPERATIONS:
        _time_warm(packages, operation)
    locks = "\n".join(
        lock.read_text() for lock in [HERE / "runtime.txt", *PEERS.glob("*/*.txt")]
    )
    processors = re.findall("model name\\s*: (.+)", Path("/proc/cpuinfo").read_text())
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": f"{processors[0]}, {platform.machine()}, {os.cpu_count()} cores, {system}",
        "openssl": openssl,
        "versions": {
            "python": platform.python_version(),
            "valgrind": subprocess.check_output(
                ["valgrind", "--version"], text=True
            ).strip(),
            **dict(sorted(re.findall(r"^([a-z0-9._-]+)==(\S+)", locks, re.MULTILINE))),
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
        if not all(
            text in log for text in ('"level"', "listPets", '"_aws"', '"Latency"')
        ):
            raise MeasurementError(
                f"{package.variant} writes no log line or no metrics:\n{log}"
            )


def _take_turns(
    packages: list[Package], operation: Operation, invocations: int, rounds: int
) -> Iterator[tuple[Package, list[Run]]]:
    """Observe variants in rounds, so that a slow minute hits all of them; give the runs of each."""
    runs: dict[Package, list[Run]] = {package: [] for package in packages}
    for _ in range(rounds):
        for package in packages:
            runs[package].append(observe(package, operation, invocations))
    yield from runs.items()


def _time_cold(packages: list[Package]) -> None:
    for package, runs in _take_turns(packages, LIST_20, 1, COLD_RUNS):
        quartiles = statistics.quantiles((run.first_answer_ms for run in runs), n=4)
        first, median, third = (round(value, 1) for value in quartiles)
        package.figures.update(
            cold_ms=median, cold_ms_quartiles=[first, third], peak_mb=0.0
        )


def _time_warm(packages: list[Package], operation: Operation) -> None:
    """Time warm invocations; price what they take."""
    for package, runs in _take_turns(
        packages, operation, _WARM_UP + _WARM, WARM_ROUNDS
    ):
        cpu_us = statistics.median(
            statistics.mean(run.cpu_us[_WARM_UP:]) for run in runs
        )
        warm_us = statistics.median(
            statistics.median(run.us[_WARM_UP:]) for run in runs
        )
        figures = {
            "warm_us": round(warm_us, 1),
            "warm_cpu_us": round(cpu_us, 1),
            "log_bytes": runs[-1].log_bytes,
            "usd_per_million": prices.usd_per_million(runs[-1], operation, cpu_us),
        }
        for key, value in figures.items():
            package.figures.setdefault(key, {})[operation.name] = value
        peak_mb = max(run.peak_mb for run in runs)
        package.figures["peak_mb"] = max(package.figures["peak_mb"], round(peak_mb, 1))


# Lambda's runtime client gives up connecting after a second, which a busy machine may need.
@stamina.retry(on=MeasurementError, attempts=3, timeout=None)
def _instructions(
    package: Package,
    operation: Operation = LIST_20,
    invocations: int = 1,
    kept: int = sys.maxsize,
) -> int:
    """Count the instructions from the start of the process until it has answered that often."""
    return observe(
        package, operation, invocations, kept=kept, wrapper=VALGRIND
    ).instructions


def _warm(
    package: Package, operation: Operation, more: int = _WARM, **options: int
) -> int:
    """Count the instructions of one more invocation of a function that has answered some."""
    before = _instructions(package, operation, _WARM_UP, **options)
    after = _instructions(package, operation, _WARM_UP + more, **options)
    return round((after - before) / more)


def _count(package: Package) -> None:
    # More than once: it does not vary.
    cold = sorted(_instructions(package) for _ in range(3))
    package.figures.update(
        cold_instructions=cold[1],
        cold_instructions_range=[cold[0], cold[2]],
        warm_instructions={each.name: _warm(package, each) for each in OPERATIONS},
        # The connection of the last request before those that count is closed, too.
        reconnect_instructions=_warm(package, GET, _RECONNECTS, kept=_WARM_UP - 1),
    )
    print(json.dumps(package.figures), file=sys.stderr)
