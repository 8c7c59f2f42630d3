"""The whole comparison in one run: package, verify, measure in interleaved rounds."""

import datetime as dt
import itertools
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable
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
_KEYS = (
    "key_unknown",
    "key_known",
)  # the first invocation looks the API key up, the second knows it

# Enough invocations for caches to fill, then enough to spread the collector's rare full passes over.
_WARM_UP, _WARM, _RECONNECTS = 20, 100, 10


def compare() -> dict[str, Any]:
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
    programs = {"python": str(PYTHON), "valgrind": "valgrind"}
    locks = "\n".join(lock.read_text() for lock in [HERE / "runtime.txt", *PEERS.glob("*/*.txt")])
    processor = re.findall(
        r"^model name\s*: (.*\S)", Path("/proc/cpuinfo").read_text(), re.MULTILINE
    )
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": {
            "processor": processor[0] if processor else "",
            "architecture": platform.machine(),
            "cores": os.cpu_count(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
            "system": f"{platform.system()} {platform.release()}, {platform.freedesktop_os_release()['PRETTY_NAME']}",
        },
        "versions": {
            **{
                name: subprocess.check_output([each, "--version"], text=True).split()[-1]
                for name, each in programs.items()
            },
            **dict(sorted(re.findall(r"^([a-z0-9._-]+)==(\S+)", locks, re.MULTILINE))),
        },
        "prices": {"date": prices.DATE, "region": prices.REGION},
        "rows": [package.figures for package in packages],
        "dynamodb": [
            {"animals": animals, "operation": operation.name, "key": key, **asdict(cost)}
            for animals, operation in itertools.product(TABLE_SIZES, OPERATIONS)
            for key, cost in zip(
                _KEYS, observe(packages[0], operation, 2, animals=animals).costs, strict=True
            )
        ],
    }


def cold_ratio() -> dict[str, Any]:
    """Count the instructions of a cold start, ours and bare, and their ratio: what guards against a slow change."""
    with ThreadPoolExecutor() as pool:
        ours, bare = pool.map(
            _instructions, [build(variant, "precompiled") for variant in (OURS, "bare")]
        )
    return {"ours": ours, "bare": bare, "ratio": round(ours / bare, 3)}


def _verify(package: Package) -> None:
    """Check that a variant does what it is compared for: authentication, a structured log line, metrics."""
    if package.variant not in ("empty", "bare"):
        observe(package, REFUSED, 1)
        lines = [
            json.loads(line)
            for line in observe(package, LIST_20, 1).log.splitlines()
            if line.startswith("{")
        ]
        logged = any("level" in line and "listPets" in line.values() for line in lines)
        if not logged or not any("_aws" in line and "Latency" in line for line in lines):
            raise MeasurementError(f"{package.variant} writes no log line or no metrics:\n{lines}")


def _take_turns(
    packages: list[Package], *run: Any, rounds: int
) -> Iterable[tuple[Package, tuple[Run, ...]]]:
    """Observe variants in rounds, so that a slow minute hits all of them; give the runs of each."""
    taken = [[observe(package, *run) for package in packages] for _ in range(rounds)]
    return zip(packages, zip(*taken, strict=True), strict=True)


def _time_cold(packages: list[Package]) -> None:
    for package, runs in _take_turns(packages, LIST_20, 1, rounds=COLD_RUNS):
        quartiles = statistics.quantiles((run.first_answer_ms for run in runs), n=4)
        first, median, third = (round(value, 1) for value in quartiles)
        package.figures.update(
            cold_ms=median, cold_ms_quartiles=[first, third], cold_runs=COLD_RUNS, peak_mb=0.0
        )


def _time_warm(packages: list[Package], operation: Operation) -> None:
    """Time warm invocations; price what they take."""
    for package, runs in _take_turns(packages, operation, _WARM_UP + _WARM, rounds=WARM_ROUNDS):
        medians = sorted(round(statistics.median(run.us[_WARM_UP:]), 1) for run in runs)
        cpu_us = statistics.median(statistics.mean(run.cpu_us[_WARM_UP:]) for run in runs)
        figures = {
            "warm_us": statistics.median(medians),
            "warm_us_range": [medians[0], medians[-1]],
            "warm_cpu_us": round(cpu_us, 1),
            "log_bytes": runs[-1].log_bytes,
            "usd_per_million": prices.usd_per_million(runs[-1], cpu_us),
        }
        for key, value in figures.items():
            package.figures.setdefault(key, {})[operation.name] = value
        package.figures["peak_mb"] = max(
            package.figures["peak_mb"], *(round(run.peak_mb, 1) for run in runs)
        )


# Lambda's runtime client gives up connecting after a second, which a simulator on a busy machine may need.
@stamina.retry(on=MeasurementError, attempts=3, timeout=None)
def _instructions(
    package: Package, operation: Operation = LIST_20, invocations: int = 1, kept: int = sys.maxsize
) -> int:
    """Count the instructions from the start of the process until it has answered that often, once by default: cold."""
    return observe(package, operation, invocations, kept=kept, wrapper=VALGRIND).instructions


def _warm(
    package: Package, operation: Operation, more: int = _WARM, kept: int = sys.maxsize
) -> int:
    """Count the instructions of one more invocation of a function that has answered some, runtime client included."""
    counts = [
        _instructions(package, operation, number, kept) for number in (_WARM_UP, _WARM_UP + more)
    ]
    return round((counts[1] - counts[0]) / more)


def _count(package: Package) -> None:
    """Count instructions; warm ones of the precompiled packages only.

    How code was packed makes no difference once it is loaded, as the times of both show, and to load source in the
    simulator takes most of an hour.
    """
    precompiled = package.packaging == "precompiled"
    # Once shows the figure; more than once, where it is quick, shows that it does not vary.
    cold = sorted(_instructions(package) for _ in range(3 if precompiled else 1))
    package.figures.update(
        cold_instructions=round(statistics.median(cold)),
        cold_instructions_range=[cold[0], cold[-1]],
        warm_instructions={
            each.name: _warm(package, each) if precompiled else None for each in OPERATIONS
        },
        # The connection of the last request before those that count is closed, too.
        reconnect_instructions=_warm(package, GET, _RECONNECTS, _WARM_UP - 1)
        if precompiled
        else None,
    )
    print(package.figures, file=sys.stderr)
