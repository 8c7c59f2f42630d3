"""Compare the animal store with its peers, or, with `--quick`, count its cold start alone: run by `make bench`."""

import argparse
import json
import subprocess
import sys

from benchmarks import compare, memory, report
from benchmarks.execution import MeasurementError
from benchmarks.packages import HERE, build_runtime, clean_up
from tools import ROOT

RESULTS = HERE / "results.json"


def _find_python() -> str:
    """Find the Python of Lambda's runtime."""
    path = subprocess.run([ROOT / "scripts/find-python"], check=True, capture_output=True, text=True).stdout.strip()
    version = subprocess.run([path, "-V"], check=True, capture_output=True, text=True).stdout.split()[1]
    if not version.startswith("3.13."):
        raise MeasurementError(f"This benchmark needs CPython 3.13, which AWS runs; found {version}.")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--quick", action="store_true", help="instructions of a cold start, ours and bare, as JSON")
    choice.add_argument("--report", action="store_true", help="write the report again, from results.json")
    choice.add_argument("--memory", action="store_true", help="compare memory sizes: MEMORY.md")
    arguments = parser.parse_args()
    try:
        if not arguments.report:
            build_runtime(_find_python())
        if arguments.quick:
            print(json.dumps(compare.cold_ratio()))
            return
        if arguments.memory:
            report.write_memory(memory.table(), memory.__doc__ or "", HERE / "MEMORY.md")
            return
        if not arguments.report:
            RESULTS.write_text(json.dumps(compare.compare(), indent=1) + "\n")
        report.write(json.loads(RESULTS.read_text()), HERE)
    except MeasurementError as error:
        sys.exit(str(error))
    finally:
        clean_up()


if __name__ == "__main__":
    main()
