"""Compare the animal store with its peers, or, with `--quick`, count its cold start alone: run by `make bench`."""

import argparse
import json
import shutil
import subprocess
import sys

from benchmarks import compare, memory, report
from benchmarks.execution import MeasurementError
from benchmarks.packages import BUILD, HERE, build_runtime
from tools import ROOT

RESULTS = HERE / "results.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--quick", action="store_true", help="instructions of a cold start, ours and bare, as JSON")
    choice.add_argument("--report", action="store_true", help="write the report again, from results.json")
    choice.add_argument("--memory", action="store_true", help="compare memory sizes: MEMORY.md")
    arguments = parser.parse_args()
    if not arguments.report and not shutil.which("valgrind"):
        sys.exit("The benchmark needs Linux and valgrind (Debian: apt-get install valgrind).")
    try:
        if not arguments.report:
            build_runtime(subprocess.check_output([ROOT / "scripts/find-python"], text=True).strip())
        if arguments.quick:
            print(json.dumps(compare.cold_ratio()))
        elif arguments.memory:
            (HERE / "MEMORY.md").write_text(memory.report())
        else:
            if not arguments.report:
                RESULTS.write_text(json.dumps(compare.compare(), indent=1) + "\n")
            report.write(json.loads(RESULTS.read_text()), HERE)
    except MeasurementError as error:
        sys.exit(str(error))
    finally:
        shutil.rmtree(BUILD, ignore_errors=True)


if __name__ == "__main__":
    main()
