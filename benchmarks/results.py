"""The whole comparison in one run: package, verify, measure in interleaved rounds."""

import asyncio
import datetime as dt
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import measures
from benchmarks.execution import MeasurementError
from benchmarks.operations import OPERATIONS
from benchmarks.packages import OURS, PACKAGINGS, PEERS, VARIANTS, Package, build, python

COLD_RUNS = int(os.environ.get("COLD_RUNS", "20"))
WARM_ROUNDS = int(os.environ.get("WARM_ROUNDS", "3"))
TABLE_SIZES = (100, 10_000, 100_000)

_FLOOR = ("empty", "bare")
# Once shows the figure; more than once, where it is quick, shows that it does not vary.
_COUNTS_OF_COLD = {"precompiled": 3, "plain": 1}

Progress = Callable[[str], None]


def compare(progress: Progress) -> dict[str, Any]:
    """Measure every variant in both packagings.

    Args:
        progress: Is told what is being done.

    Returns:
        What `results.json` holds.
    """
    packages = []
    for packaging in PACKAGINGS:
        for variant in VARIANTS:
            progress(f"packaging {variant}, {packaging}")
            packages.append(build(variant, packaging))
    return asyncio.run(_compare(packages, progress))


async def _compare(packages: list[Package], progress: Progress) -> dict[str, Any]:
    for package in packages:
        if package.variant not in _FLOOR:
            progress(f"verifying {package.variant}, {package.packaging}")
            await measures.verify(package)
    rows = [_sizes(package) for package in packages]
    await _time_cold(packages, rows, progress)
    await _time_warm(packages, rows, progress)
    await _count(packages, rows, progress)
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": machine(),
        "versions": versions(),
        "rows": rows,
        "dynamodb": await _cost(packages, progress),
    }


def _sizes(package: Package) -> dict[str, Any]:
    return {
        "variant": package.variant,
        "packaging": package.packaging,
        "zipped_mb": round(package.zipped / 1e6, 3),
        "unzipped_mb": round(package.unzipped / 1e6, 3),
    }


async def _time_cold(packages: list[Package], rows: list[dict[str, Any]], progress: Progress) -> None:
    runs: list[list[float]] = [[] for _ in packages]
    for number in range(COLD_RUNS):
        progress(f"timing cold starts, round {number + 1} of {COLD_RUNS}")
        for package, times in zip(packages, runs, strict=True):
            times.append(await measures.cold_ms(package))
    for row, times in zip(rows, runs, strict=True):
        row["cold_ms"], row["cold_ms_quartiles"] = _median_and_quartiles(times)
        row["cold_runs"] = len(times)


async def _time_warm(packages: list[Package], rows: list[dict[str, Any]], progress: Progress) -> None:
    runs: list[dict[str, list[measures.Warm]]] = [{} for _ in packages]
    for number in range(WARM_ROUNDS):
        progress(f"timing warm invocations, round {number + 1} of {WARM_ROUNDS}")
        for operation in OPERATIONS:
            for package, of_operation in zip(packages, runs, strict=True):
                of_operation.setdefault(operation.name, []).append(await measures.warm(package, operation))
    for row, of_operation in zip(rows, runs, strict=True):
        row["warm_us"] = _by_operation(of_operation, lambda warm: warm.us)
        row["warm_us_range"] = {
            name: [round(min(warm.us for warm in series), 1), round(max(warm.us for warm in series), 1)]
            for name, series in of_operation.items()
        }
        row["warm_cpu_us"] = _by_operation(of_operation, lambda warm: warm.cpu_us)
        row["peak_mb"] = round(max(warm.peak_mb for series in of_operation.values() for warm in series), 1)


async def _count(packages: list[Package], rows: list[dict[str, Any]], progress: Progress) -> None:
    """Count instructions, as many processes at once as there are processors: no count depends on another's presence.

    Warm ones of the precompiled packages only: how code was packed makes no difference once it is loaded, as the times
    of both show, and to load source in the simulator takes most of an hour.
    """
    for row in rows:
        row |= {"cold_instructions": None, "warm_instructions": dict.fromkeys(o.name for o in OPERATIONS)}
    if measures.valgrind() is None:
        return
    free = asyncio.Semaphore(os.cpu_count() or 1)
    done = 0

    async def take_turn(count: Coroutine[Any, Any, int]) -> int:
        nonlocal done
        async with free:
            counted = await count
        done += 1
        progress(f"counting instructions, {done} done")
        return counted

    async def of_package(package: Package, row: dict[str, Any]) -> None:
        times = _COUNTS_OF_COLD[package.packaging]
        counts = await asyncio.gather(*(take_turn(measures.cold_instructions(package)) for _ in range(times)))
        row["cold_instructions"] = round(statistics.median(counts))
        row["cold_instructions_range"] = [min(counts), max(counts)]
        if package.packaging == "precompiled":
            warm = await asyncio.gather(*(take_turn(measures.warm_instructions(package, o)) for o in OPERATIONS))
            row["warm_instructions"] = dict(zip((o.name for o in OPERATIONS), warm, strict=True))

    await asyncio.gather(*(of_package(package, row) for package, row in zip(packages, rows, strict=True)))


async def _cost(packages: list[Package], progress: Progress) -> list[dict[str, Any]]:
    ours = next(package for package in packages if package.variant == OURS and package.packaging == "precompiled")
    rows = []
    for animals in TABLE_SIZES:
        progress(f"counting DynamoDB requests on {animals} animals")
        for operation in OPERATIONS:
            costs = await measures.dynamodb_cost(ours, operation, animals)
            rows += [
                {"animals": animals, "operation": operation.name, "key": key, **asdict(cost)}
                for key, cost in costs.items()
            ]
    return rows


async def _cold_ratio() -> dict[str, Any]:
    ours, bare = (build(variant, "precompiled") for variant in (OURS, "bare"))
    counts = await asyncio.gather(measures.cold_instructions(ours), measures.cold_instructions(bare))
    return {"ours": counts[0], "bare": counts[1], "ratio": round(counts[0] / counts[1], 3)}


def cold_ratio() -> dict[str, Any]:
    """Count the instructions of a cold start, ours and bare, and their ratio: what guards against a slow change."""
    if measures.valgrind() is None:
        raise MeasurementError("valgrind is absent: instructions cannot be counted")
    return asyncio.run(_cold_ratio())


def machine() -> dict[str, Any]:
    """Describe the machine."""
    processor = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": processor[1].strip() if processor else platform.machine(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1e9),
        "system": f"{platform.system()} {platform.release()}, {platform.freedesktop_os_release().get('PRETTY_NAME')}",
    }


def versions() -> dict[str, str]:
    """List the versions of everything that was measured or measured with."""
    locks = [Path(__file__).parent / "runtime.txt", *PEERS.glob("*/*.txt")]
    pins = re.findall(r"^([a-z0-9._-]+)==(\S+)", "\n".join(lock.read_text() for lock in locks), re.MULTILINE)
    return {
        "python": _first_line(str(python()), "-V").removeprefix("Python "),
        "valgrind": _first_line("valgrind", "--version") if measures.valgrind() else "absent",
        **dict(sorted(pins)),
    }


def _first_line(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0]


def _median_and_quartiles(values: list[float]) -> tuple[float, list[float]]:
    first, _, third = statistics.quantiles(values, n=4)
    return round(statistics.median(values), 1), [round(first, 1), round(third, 1)]


def _by_operation(series: dict[str, list[measures.Warm]], figure: Callable[[measures.Warm], float]) -> dict[str, float]:
    return {name: round(statistics.median(map(figure, warms)), 1) for name, warms in series.items()}
