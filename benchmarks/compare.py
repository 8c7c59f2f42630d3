"""The whole comparison in one run: package, verify, measure in interleaved rounds."""

import datetime as dt
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import stamina

from benchmarks import prices
from benchmarks.execution import VALGRIND, MeasurementError, Run, observe
from benchmarks.operations import GET, LIST_20, OPERATIONS, REFUSED, Operation
from benchmarks.packages import HERE, OURS, PACKAGINGS, PEERS, PYTHON, VARIANTS, Package, build

COLD_RUNS = int(os.environ.get("COLD_RUNS", "20"))
WARM_ROUNDS = int(os.environ.get("WARM_ROUNDS", "3"))
TABLE_SIZES = (100, 10_000, 100_000)

# Enough invocations for caches to fill, then enough to spread the collector's rare full passes over.
_WARM_UP, _WARM, _RECONNECTS = 20, 100, 10

Row = dict[str, Any]


def compare() -> Row:
    """Measure every variant in both packagings; return what `results.json` holds."""
    packages = [build(variant, packaging) for packaging in PACKAGINGS for variant in VARIANTS]
    for package in packages:
        _verify(package)
    # As many processes at once as there are processors: no count depends on another's presence.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_count, packages))
    _time_cold(packages)
    for operation in OPERATIONS:
        _time_warm(packages, operation)
    locks = "\n".join(lock.read_text() for lock in [HERE / "runtime.txt", *PEERS.glob("*/*.txt")])
    processor = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": {
            "processor": processor[1].strip() if processor else "",
            "architecture": platform.machine(),
            "cores": os.cpu_count(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
            "system": f"{platform.system()} {platform.release()}, {platform.freedesktop_os_release()['PRETTY_NAME']}",
        },
        "versions": {
            "python": _version(str(PYTHON)),
            "valgrind": _version("valgrind"),
            **dict(sorted(re.findall(r"^([a-z0-9._-]+)==(\S+)", locks, re.MULTILINE))),
        },
        "prices": {"date": prices.DATE, "region": prices.REGION},
        "rows": [package.figures for package in packages],
        "dynamodb": [row for animals in TABLE_SIZES for row in _dynamodb(packages[0], animals)],
    }


def cold_ratio() -> Row:
    """Count the instructions of a cold start, ours and bare, and their ratio: what guards against a slow change."""
    with ThreadPoolExecutor() as pool:
        ours, bare = pool.map(_cold, [build(variant, "precompiled") for variant in (OURS, "bare")])
    return {"ours": ours, "bare": bare, "ratio": round(ours / bare, 3)}


def _version(program: str) -> str:
    return subprocess.check_output([program, "--version"], text=True).split()[-1]


def _verify(package: Package) -> None:
    """Check that a variant does what it is compared for: authentication, a structured log line, metrics."""
    if package.variant not in ("empty", "bare"):
        observe(package, REFUSED, 1)
        lines = [json.loads(line) for line in observe(package, LIST_20, 1).log.splitlines() if line.startswith("{")]
        logged = any("level" in line and "listPets" in line.values() for line in lines)
        if not logged or not any("_aws" in line and "Latency" in line for line in lines):
            raise MeasurementError(f"{package.variant} writes no log line or no metrics:\n{lines}")


def _time_cold(packages: list[Package]) -> None:
    """Time cold starts in rounds, variants taking turns."""
    times: dict[Package, list[float]] = defaultdict(list)
    for _ in range(COLD_RUNS):
        for package in packages:
            times[package].append(observe(package, LIST_20, 1).first_answer_ms)
    for package in packages:
        first, median, third = (round(value, 1) for value in statistics.quantiles(times[package], n=4))
        package.figures.update(cold_ms=median, cold_ms_quartiles=[first, third], cold_runs=COLD_RUNS, peak_mb=0.0)


def _time_warm(packages: list[Package], operation: Operation) -> None:
    """Time warm invocations in rounds, variants taking turns; price what they take."""
    runs: dict[Package, list[Run]] = defaultdict(list)
    for _ in range(WARM_ROUNDS):
        for package in packages:
            runs[package].append(observe(package, operation, _WARM_UP + _WARM))
    for package in packages:
        medians = sorted(round(statistics.median(run.us[_WARM_UP:]), 1) for run in runs[package])
        cpu_us = statistics.median(statistics.mean(run.cpu_us[_WARM_UP:]) for run in runs[package])
        figures = {
            "warm_us": statistics.median(medians),
            "warm_us_range": [medians[0], medians[-1]],
            "warm_cpu_us": round(cpu_us, 1),
            "log_bytes": runs[package][-1].log_bytes,
            "usd_per_million": prices.usd_per_million(runs[package][-1], cpu_us),
        }
        for key, value in figures.items():
            package.figures.setdefault(key, {})[operation.name] = value
        package.figures["peak_mb"] = max(package.figures["peak_mb"], *(round(run.peak_mb, 1) for run in runs[package]))


# Lambda's runtime client gives up connecting after a second, which a simulator on a busy machine may need.
@stamina.retry(on=MeasurementError, attempts=3, timeout=None)
def _instructions(package: Package, operation: Operation, invocations: int, kept: int = sys.maxsize) -> int:
    """Count the instructions from the start of the process until it has answered that often."""
    return observe(package, operation, invocations, kept=kept, wrapper=VALGRIND).instructions


def _cold(package: Package) -> int:
    """Count the instructions of a cold start: from the start of the runtime client to the answer, a list of 20."""
    return _instructions(package, LIST_20, 1)


def _warm(package: Package, operation: Operation, more: int = _WARM, kept: int = sys.maxsize) -> int:
    """Count the instructions of one more invocation of a function that has answered some, runtime client included."""
    counts = [_instructions(package, operation, number, kept) for number in (_WARM_UP, _WARM_UP + more)]
    return round((counts[1] - counts[0]) / more)


def _count(package: Package) -> None:
    """Count instructions; warm ones of the precompiled packages only.

    How code was packed makes no difference once it is loaded, as the times of both show, and to load source in the
    simulator takes most of an hour.
    """
    precompiled = package.packaging == "precompiled"
    # Once shows the figure; more than once, where it is quick, shows that it does not vary.
    cold = sorted(_cold(package) for _ in range(3 if precompiled else 1))
    package.figures.update(
        cold_instructions=round(statistics.median(cold)),
        cold_instructions_range=[cold[0], cold[-1]],
        warm_instructions={each.name: _warm(package, each) if precompiled else None for each in OPERATIONS},
        # The connection of the last request before those that count is closed, too.
        reconnect_instructions=_warm(package, GET, _RECONNECTS, _WARM_UP - 1) if precompiled else None,
    )
    print(package.figures, file=sys.stderr)


def _dynamodb(ours: Package, animals: int) -> list[Row]:
    """Read what each operation asks of DynamoDB, with the API key unknown and known."""
    rows = []
    for operation in OPERATIONS:
        costs = observe(ours, operation, 2, animals=animals).costs
        for key, cost in zip(("key_unknown", "key_known"), costs, strict=True):
            rows.append({"animals": animals, "operation": operation.name, "key": key, **asdict(cost)})
    return rows
