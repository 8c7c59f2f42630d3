"""Package, verify and count; with `--quick`, count a cold start alone."""

import datetime as dt
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import stamina

from benchmarks import report
from benchmarks.execution import observe
from benchmarks.operations import GET, LIST_20, OPERATIONS, REFUSED, Operation
from benchmarks.packages import (
    BUILD,
    HERE,
    OURS,
    TITLES,
    TUNED,
    MeasurementError,
    Package,
    build,
    build_runtime,
)

_ROUNDS = 5


class Case(NamedTuple):
    """What is measured: the mean of an operation's invocations that follow the first ones."""

    operation: Operation
    first: int
    more: int
    kept: int = sys.maxsize
    """DynamoDB hangs up after each invocation but so many."""


_COLD = Case(LIST_20, 0, 1)
# Enough first invocations for caches to fill, then enough to spread the collector's rare full
# passes over. The connection of the last request before the measured ones is closed, too.
CASES = {
    "cold": _COLD,
    "reconnect": Case(GET, 20, 40, kept=19),
    **{each.name: Case(each, 20, 100) for each in OPERATIONS},
}


def compare(openssl: str) -> dict[str, Any]:
    """Measure every variant; return what `results.json` holds."""
    packages = [build(variant) for variant in TITLES]
    for package in packages:
        if not package.variant.startswith("bare"):
            _verify(package)
    # As many at once as there are processors: no count depends on another process.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_describe, packages))
    for name, case in CASES.items():
        # In turn, so that a slow minute hits all of them.
        rounds = [[_cpu_ms(each, case) for each in packages] for _ in range(_ROUNDS)]
        for package, times in zip(packages, zip(*rounds, strict=True), strict=True):
            package.figures.setdefault("cpu_ms", {})[name] = round(min(times), 2)
    processor = re.findall("model name\\s*: (.+)", Path("/proc/cpuinfo").read_text())[0]
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    valgrind = subprocess.check_output(["valgrind", "--version"], text=True)
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": f"{processor}, {platform.machine()}, {os.cpu_count()} cores, {system}",
        "load": round(os.getloadavg()[2], 1),
        "openssl": openssl,
        "python": platform.python_version(),
        "valgrind": valgrind.strip(),
        "rows": [package.figures for package in packages],
    }


def cold_ratio() -> dict[str, Any]:
    """Count the instructions of a cold start, ours and bare, and the lines that ours logs."""
    ours, bare = build(OURS), build(TUNED)
    with ThreadPoolExecutor() as pool:
        counts = list(pool.map(_instructions, [ours, bare], [_COLD] * 2, [1] * 2))
    lines = len(observe(ours, LIST_20).log.splitlines())
    return {"ratio": round(counts[0] / counts[1], 3), "lines": lines, "counts": counts}


# Lambda's runtime client gives up connecting after a second, which a busy machine may need.
@stamina.retry(on=MeasurementError, attempts=3, timeout=None)
def _instructions(package: Package, case: Case, invocations: int) -> int:
    """Count the instructions from the process's start until it has answered that many times."""
    run = observe(package, case.operation, invocations, kept=case.kept, is_counted=True)
    return run.instructions


def _mean_instructions(package: Package, case: Case) -> int:
    before = _instructions(package, case, case.first) if case.first else 0
    after = _instructions(package, case, case.first + case.more)
    return round((after - before) / case.more)


@stamina.retry(on=MeasurementError, attempts=3, timeout=None)
def _cpu_ms(package: Package, case: Case) -> float:
    last = case.first + case.more
    spent = observe(package, case.operation, last, kept=case.kept).cpu_ms
    return (spent[last] - spent[case.first]) / case.more


def _verify(package: Package) -> None:
    """Check that a framework does its work: authentication, a structured log line, metrics."""
    observe(package, REFUSED)
    log = observe(package, LIST_20).log
    if not all(text in log for text in ('"level"', "listPets", '"_aws"')):
        raise MeasurementError(f"{package.variant} logs no line or no metrics:\n{log}")


def _describe(package: Package) -> None:
    """Count a variant's instructions, and note what else it uses."""
    package.figures.update(
        cold_log_lines=len(observe(package, LIST_20).log.splitlines()),
        instructions={
            name: _mean_instructions(package, case) for name, case in CASES.items()
        },
    )
    for operation in OPERATIONS:
        run = observe(package, operation, invocations=2)
        for figure in ("requests", "read_units", "log_bytes", "body_bytes"):
            of_each = package.figures.setdefault(figure, {})
            of_each[operation.name] = getattr(run, figure)


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
