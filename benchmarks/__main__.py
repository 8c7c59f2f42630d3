"""Compare the animal store with its peers, or, with `--quick`, count its cold start alone: run by `make bench`."""

import json
import shutil
import subprocess
import sys

from benchmarks import compare, memory, report
from benchmarks.execution import MeasurementError
from benchmarks.packages import BUILD, HERE, build_runtime
from tools import ROOT


def main(option: str) -> None:
    """Measure what was asked for: `--quick`, `--memory`, or everything; `--report` writes the report again."""
    results = HERE / "results.json"
    if option != "--report":
        build_runtime(subprocess.check_output([ROOT / "scripts/find-python"], text=True).strip())
    if option == "--quick":
        print(json.dumps(compare.cold_ratio()))
        return
    if option == "--memory":
        (HERE / "MEMORY.md").write_text(memory.report())
        return
    if option != "--report":
        results.write_text(json.dumps(compare.compare(), indent=1) + "\n")
    (HERE / "RESULTS.md").write_text(report.markdown(json.loads(results.read_text())))


if __name__ == "__main__":
    if not shutil.which("valgrind"):
        sys.exit("The benchmark needs Linux and valgrind (Debian: apt-get install valgrind).")
    try:
        main(sys.argv[-1])
    except MeasurementError as error:
        sys.exit(str(error))
    finally:
        shutil.rmtree(BUILD, ignore_errors=True)
