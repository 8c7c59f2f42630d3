"""Compare the animal store with its peers, or, with `--quick`, count its cold start alone."""

import json
import shutil
import sys

from benchmarks import compare, report
from benchmarks.packages import BUILD, HERE, MeasurementError, build_runtime

if __name__ == "__main__":
    if not shutil.which("valgrind"):
        sys.exit(
            "The benchmark needs Linux and valgrind (Debian: apt-get install valgrind)."
        )
    try:
        openssl = build_runtime()
        if "--quick" in sys.argv:
            print(json.dumps(compare.cold_ratio()))
        else:
            figures = compare.compare(openssl)
            (HERE / "results.json").write_text(json.dumps(figures, indent=1) + "\n")
            (HERE / "RESULTS.md").write_text(report.markdown(figures))
    except MeasurementError as error:
        sys.exit(str(error))
    finally:
        shutil.rmtree(BUILD, ignore_errors=True)
