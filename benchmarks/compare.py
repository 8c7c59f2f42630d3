"""The whole comparison in one run: package, verify, measure in interleaved rounds."""

import asyncio
import datetime as dt
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import prices
from benchmarks.execution import Invocation, MeasurementError, observe, valgrind
from benchmarks.operations import GET, LIST_20, OPERATIONS, REFUSED, Operation
from benchmarks.packages import HERE, OURS, PACKAGINGS, PEERS, VARIANTS, Package, build, python

COLD_RUNS = int(os.environ.get("COLD_RUNS", "20"))
WARM_ROUNDS = int(os.environ.get("WARM_ROUNDS", "3"))
TABLE_SIZES = (100, 10_000, 100_000)

# Enough invocations for caches to fill, then enough to spread the collector's rare full passes over.
_WARM_UP, _WARM, _RECONNECTS = 20, 100, 10

Row = dict[str, Any]
Rows = list[tuple[Package, Row]]


def progress(message: str) -> None:
    """Tell the person at the terminal what is being done."""
    print(message, file=sys.stderr, flush=True)


def compare() -> Row:
    """Measure every variant in both packagings; return what `results.json` holds."""
    rows: Rows = []
    for packaging in PACKAGINGS:
        for variant in VARIANTS:
            progress(f"packaging {variant}, {packaging}")
            package = build(variant, packaging)
            sizes = {"zipped_mb": round(package.zipped / 1e6, 3), "unzipped_mb": round(package.unzipped / 1e6, 3)}
            rows.append((package, {"variant": variant, "packaging": packaging, **sizes}))
    return asyncio.run(_compare(rows))


async def _compare(rows: Rows) -> Row:
    for package, _ in rows:
        if package.variant not in ("empty", "bare"):
            progress(f"verifying {package.variant}, {package.packaging}")
            await _verify(package)
    await _time(rows)
    await _count(rows)
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": _machine(),
        "versions": _versions(),
        "prices": {"date": prices.DATE, "region": prices.REGION},
        "rows": [row for _, row in rows],
        "dynamodb": [row for animals in TABLE_SIZES for row in await _dynamodb(rows[0][0], animals)],
    }


async def _verify(package: Package) -> None:
    """Check that a variant does what it is compared for: authentication, a structured log line, metrics."""
    await observe(package, REFUSED, 1)
    log = (await observe(package, LIST_20, 1)).log
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    if not any(line.get("message") == "request" for line in lines) or not any("_aws" in line for line in lines):
        raise MeasurementError(f"{package.variant} writes no log line or no metrics:\n{lines}")


async def _time(rows: Rows) -> None:
    """Time cold starts and warm invocations in rounds, variants taking turns; price what the warm ones take."""
    cold: dict[int, list[float]] = {place: [] for place in range(len(rows))}
    for number in range(COLD_RUNS):
        progress(f"timing cold starts, round {number + 1} of {COLD_RUNS}")
        for place, (package, _) in enumerate(rows):
            cold[place].append((await observe(package, LIST_20, 1)).first_answer_ms)
    for place, (_, row) in enumerate(rows):
        first, median, third = (round(value, 1) for value in statistics.quantiles(cold[place], n=4))
        row |= {"cold_ms": median, "cold_ms_quartiles": [first, third], "cold_runs": COLD_RUNS, "peak_mb": 0.0}
        row |= {key: {} for key in ("warm_us", "warm_us_range", "warm_cpu_us", "log_bytes", "usd_per_million")}
    for operation in OPERATIONS:
        series: dict[int, list[list[Invocation]]] = {place: [] for place in range(len(rows))}
        for number in range(WARM_ROUNDS):
            progress(f"timing {operation.title}, round {number + 1} of {WARM_ROUNDS}")
            for place, (package, row) in enumerate(rows):
                run = await observe(package, operation, _WARM_UP + _WARM)
                series[place].append(run.invocations[_WARM_UP:])
                row["peak_mb"] = max(row["peak_mb"], round(run.peak_mb, 1))
        for place, (_, row) in enumerate(rows):
            medians = sorted(round(statistics.median(each.us for each in warm), 1) for warm in series[place])
            cpu = statistics.median(statistics.mean(each.cpu_us for each in warm) for warm in series[place])
            last = series[place][-1][-1]
            row["warm_us"][operation.name] = statistics.median(medians)
            row["warm_us_range"][operation.name] = [medians[0], medians[-1]]
            row["warm_cpu_us"][operation.name] = round(cpu, 1)
            row["log_bytes"][operation.name] = last.log_bytes
            row["usd_per_million"][operation.name] = prices.usd_per_million(last, cpu)


async def _instructions(package: Package, operation: Operation, invocations: int, reconnects: int = 0) -> int:
    """Count the instructions from the start of the process until it has answered that often."""
    for _ in range(2):
        # Lambda's runtime client gives up connecting after a second, which a simulator on a busy machine may need.
        with suppress(MeasurementError):
            return (await observe(package, operation, invocations, counting=True, reconnects=reconnects)).instructions
    return (await observe(package, operation, invocations, counting=True, reconnects=reconnects)).instructions


async def _cold(package: Package, times: int = 1) -> list[int]:
    """Count the instructions of a cold start: from the start of the runtime client to the answer, a list of 20."""
    return [await _instructions(package, LIST_20, 1) for _ in range(times)]


async def _warm(package: Package, operation: Operation, times: int, reconnects: int = 0) -> int:
    """Count the instructions of one more invocation of a function that has answered some, runtime client included."""
    fewer = await _instructions(package, operation, _WARM_UP)
    more = await _instructions(package, operation, _WARM_UP + times, reconnects)
    return round((more - fewer) / times)


async def _count(rows: Rows) -> None:
    """Count instructions, as many processes at once as there are processors: no count depends on another's presence.

    Warm ones of the precompiled packages only: how code was packed makes no difference once it is loaded, as the times
    of both show, and to load source in the simulator takes most of an hour.
    """
    free = asyncio.Semaphore(os.cpu_count() or 1)

    async def count(figures: Row, key: str, counted: Coroutine[Any, Any, Any]) -> None:
        async with free:
            figures[key] = await counted
            progress(f"counted {key}")

    for _, row in rows:
        row |= {"cold_instructions": None, "reconnect_instructions": None}
        row["warm_instructions"] = dict.fromkeys(operation.name for operation in OPERATIONS)
    if not valgrind():
        progress("valgrind is absent: the instruction columns will be null (Debian: apt-get install valgrind)")
        return
    async with asyncio.TaskGroup() as group:
        for package, row in rows:
            # Once shows the figure; more than once, where it is quick, shows that it does not vary.
            times = 3 if package.packaging == "precompiled" else 1
            group.create_task(count(row, "cold_instructions_range", _cold(package, times)))
            if package.packaging == "precompiled":
                group.create_task(count(row, "reconnect_instructions", _warm(package, GET, _RECONNECTS, _RECONNECTS)))
                for operation in OPERATIONS:
                    counted = _warm(package, operation, _WARM)
                    group.create_task(count(row["warm_instructions"], operation.name, counted))
    for _, row in rows:
        first, *_, last = counts = sorted([*row["cold_instructions_range"]] * 2)
        row |= {"cold_instructions": round(statistics.median(counts)), "cold_instructions_range": [first, last]}


async def _dynamodb(ours: Package, animals: int) -> list[Row]:
    """Read what each operation asks of DynamoDB, with the API key unknown and known."""
    rows = []
    for operation in OPERATIONS:
        run = await observe(ours, operation, 2, animals=animals)
        for key, invocation in zip(("key_unknown", "key_known"), run.invocations, strict=True):
            rows.append({"animals": animals, "operation": operation.name, "key": key, **asdict(invocation.cost)})
    return rows


def cold_ratio() -> Row:
    """Count the instructions of a cold start, ours and bare, and their ratio: what guards against a slow change."""
    if not valgrind():
        raise MeasurementError("valgrind is absent: instructions cannot be counted")

    async def both() -> list[int]:
        counts = await asyncio.gather(*(_cold(build(variant, "precompiled")) for variant in (OURS, "bare")))
        return [count for (count,) in counts]

    ours, bare = asyncio.run(both())
    return {"ours": ours, "bare": bare, "ratio": round(ours / bare, 3)}


def _machine() -> Row:
    processor = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": processor[1].strip() if processor else platform.machine(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1e9),
        "system": f"{platform.system()} {platform.release()}, {platform.freedesktop_os_release().get('PRETTY_NAME')}",
    }


def _versions() -> dict[str, str]:
    """List the versions of everything that was measured or measured with."""
    locks = [HERE / "runtime.txt", *PEERS.glob("*/*.txt")]
    pins = re.findall(r"^([a-z0-9._-]+)==(\S+)", "\n".join(lock.read_text() for lock in locks), re.MULTILINE)
    return {"python": _version(str(python())), "valgrind": _version(*valgrind()[-4:-3]), **dict(sorted(pins))}


def _version(*command: str) -> str:
    if not command:
        return "absent"
    return subprocess.run([*command, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
