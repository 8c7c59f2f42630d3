"""The parts of the reliability suite, and how they are run: each in a process of its own, two at a time."""

import importlib
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from tests.reliability.report import Row

PARTS = ("load", "keys", "faults", "kills", "protocol", "memory", "attack")
_AT_ONCE = 2


def run_part(part: str, *, quick: bool) -> tuple[list[Row], float]:
    """Run one part in this process.

    Returns:
        Its rows, and how many seconds it took.
    """
    begin = time.monotonic()
    rows: list[Row] = importlib.import_module(f"tests.reliability.{part}").run(quick=quick)
    return rows, time.monotonic() - begin


def run_parts(parts: list[str], *, quick: bool) -> list[Row]:
    """Run parts in processes of their own.

    Returns:
        Their rows, in the order of the parts; a part that breaks down has a row that says so.
    """
    found: dict[str, list[Row]] = {}
    # One process per part: each takes its stdout, its environment and its modules for itself.
    pool = ProcessPoolExecutor(_AT_ONCE, mp_context=get_context("spawn"), max_tasks_per_child=1)
    with pool:
        futures = {pool.submit(run_part, part, quick=quick): part for part in parts}
        for future in as_completed(futures):
            part = futures[future]
            try:
                found[part], seconds = future.result()
            except Exception as error:
                message = "".join(traceback.format_exception(error))
                found[part], seconds = [Row(part, "the part itself", runs=1, other=1, examples=[message])], 0.0
            failures = sum(row.failures for row in found[part])
            print(
                f"{part}: {sum(row.runs for row in found[part]):,} in {seconds:.0f} s, {failures} failures", flush=True
            )
    return [row for part in parts for row in found[part]]
