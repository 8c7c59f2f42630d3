"""The parts of the reliability suite, and how they are run: each in a process of its own, one after the other."""

import importlib
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.reliability.report import Row
from tools import ROOT

sys.path.append(str(ROOT / "layers/common"))  # it is not a package of the environment

PARTS = ("model_check", "faults", "attack")


def run_part(part: str, *, quick: bool) -> list[Row]:
    """Run one part; one that breaks down has a row that says so."""
    # It takes its stdout, its environment and its modules for itself.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        begin = time.monotonic()
        try:
            rows = process.submit(_run, part, quick=quick).result()
        except Exception as error:
            message = "".join(traceback.format_exception(error))
            rows = [Row(part, "the part itself", runs=1, other=1, examples=[message])]
    runs, failures = sum(row.runs for row in rows), sum(row.failures for row in rows)
    print(f"{part}: {runs:,} runs in {time.monotonic() - begin:.0f} s, {failures} failures", flush=True)
    return rows


def _run(part: str, *, quick: bool) -> list[Row]:
    rows: list[Row] = importlib.import_module(f"tests.reliability.{part}").run(quick=quick)
    return rows
