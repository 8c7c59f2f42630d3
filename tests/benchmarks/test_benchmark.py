"""A cold start stays as fast as published."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.support.processes import run
from tools import ROOT
from tools.packaging.targets import MACHINE, PYTHON


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.version.startswith(PYTHON) or not shutil.which("valgrind"),
    reason="the benchmark needs Lambda's Python and valgrind",
)
def test_cold_start_takes_at_most_three_quarters_of_a_tuned_handlers(
    tmp_path: Path,
) -> None:
    # Here, because the import takes long.
    from tools.benchmarks.__main__ import measure, prepare

    run("make", "build", f"ARCH={MACHINE}", cwd=ROOT)
    prepare(tmp_path)

    ours = measure(tmp_path, "this service", "cold start")
    handlers = measure(tmp_path, "tuned handler", "cold start")

    assert ours <= 0.75 * handlers
