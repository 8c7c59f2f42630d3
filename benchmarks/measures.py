"""The figures of a package: instructions in a simulator, which no noise reaches; time, memory and requests outside."""

import asyncio
import json
import re
import shutil
import statistics
import tempfile
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from benchmarks.execution import MeasurementError, new_tables, start
from benchmarks.operations import LIST_20, Operation
from benchmarks.packages import Package

# Enough invocations for caches to fill, then enough to spread the collector's rare full passes over.
_WARM_UP = 20
_WARM = 100

_SETTLE_SECONDS = 0.3


def valgrind() -> list[str] | None:
    """Give the command that counts instructions, without randomised addresses; None where valgrind is absent."""
    tool = shutil.which("valgrind")
    if tool is None:
        return None
    setarch = shutil.which("setarch")
    return [*([setarch, "-R"] if setarch else []), tool, "--quiet", "--tool=cachegrind", "--cache-sim=no"]


async def _instructions(package: Package, operation: Operation, invocations: int) -> int:
    """Count from the start of the process until it has answered the last invocation and waits for another."""
    command = valgrind()
    if command is None:
        raise MeasurementError("valgrind is absent")
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder, "counts")
        wrapper = [*command, f"--cachegrind-out-file={counts}"]
        async with start(package, operation, new_tables(), wrapper) as environment:
            for number in range(invocations):
                await environment.invoke(operation, number)
            await environment.runtime_api.idle()
            await asyncio.sleep(_SETTLE_SECONDS)
        text = counts.read_text() if counts.exists() else ""  # noqa: ASYNC240 - nothing runs beside it
        match = re.search(r"^summary: (\d+)", text, re.MULTILINE)
    if match is None:
        raise MeasurementError(f"{package.variant}: valgrind has counted nothing")
    return int(match[1])


async def cold_instructions(package: Package) -> int:
    """Count the instructions of a cold start: from the start of the runtime client to the answer, a list of 20."""
    return await _instructions(package, LIST_20, 1)


async def warm_instructions(package: Package, operation: Operation) -> int:
    """Count the instructions of one more invocation of a function that has answered some, runtime client included."""
    fewer = await _instructions(package, operation, _WARM_UP)
    more = await _instructions(package, operation, _WARM_UP + _WARM)
    return round((more - fewer) / _WARM)


async def cold_ms(package: Package) -> float:
    """Time a cold start: from the start of the runtime client to the answer, a list of 20, in milliseconds."""
    async with start(package, LIST_20, new_tables()) as environment:
        answer = await environment.invoke(LIST_20)
        return (answer.at - environment.started) * 1000


@dataclass(frozen=True)
class Warm:
    """One series of invocations.

    Args:
        us: The median from handing an event over to taking the answer, in microseconds.
        cpu_us: The mean processor time of the function's process per invocation, in microseconds.
        peak_mb: The most memory that the process has had resident, in MB (10^6 bytes).
    """

    us: float
    cpu_us: float
    peak_mb: float


async def warm(package: Package, operation: Operation) -> Warm:
    """Time invocations of a function that has answered some."""
    async with start(package, operation, new_tables()) as environment:
        for number in range(_WARM_UP):
            await environment.invoke(operation, number)
        await environment.runtime_api.idle()
        cpu_before = environment.cpu_seconds()
        seconds = [(await environment.invoke(operation, number)).seconds for number in range(_WARM)]
        await environment.runtime_api.idle()
        cpu = environment.cpu_seconds() - cpu_before
        return Warm(statistics.median(seconds) * 1e6, cpu / _WARM * 1e6, environment.peak_bytes() / 1e6)


@dataclass(frozen=True)
class Cost:
    """What one invocation asks of DynamoDB."""

    requests: int
    read_units: float
    write_units: float


async def dynamodb_cost(package: Package, operation: Operation, animals: int) -> dict[str, Cost]:
    """Count what an operation costs on a table of that many animals: with the API key unknown, and with it known."""
    tables = new_tables(animals)
    costs = {}
    async with start(package, operation, tables) as environment:
        for key in ("key_unknown", "key_known"):
            before = vars(tables.consumed).copy()
            await environment.invoke(operation)
            after = vars(tables.consumed)
            costs[key] = Cost(**{name: after[name] - before[name] for name in after})
    return costs


async def verify(package: Package) -> None:
    """Check that a variant does what it is compared for: authentication, a structured log line, metrics.

    Raises:
        MeasurementError: It does not.
    """
    async with start(package, LIST_20, new_tables()) as environment:
        refusal = await environment.runtime_api.invoke(LIST_20.event("request", authorization="Bearer wrong"))
        await environment.invoke(LIST_20)
        await environment.runtime_api.idle()
        lines = [json.loads(line) for line in environment.output().splitlines() if line.startswith("{")]
    if json.loads(refusal.body)["statusCode"] != HTTPStatus.UNAUTHORIZED:
        raise MeasurementError(f"{package.variant} takes a wrong API key")
    if not any(line.get("message") == "request" for line in lines) or not any("_aws" in line for line in lines):
        raise MeasurementError(f"{package.variant} writes no log line or no metrics:\n{lines}")
