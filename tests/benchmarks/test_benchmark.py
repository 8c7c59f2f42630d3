"""The speed of a cold start, compared with that of a handler tuned by hand."""

import sys
from pathlib import Path

import pytest

from tests.support.processes import require, run
from tools import ROOT
from tools.packaging.targets import HOST_ARCHITECTURE, PYTHON


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.version.startswith(PYTHON), reason="the benchmark needs Lambda's Python"
)
def test_cold_start_needs_a_third_less_than_a_tuned_handler(tmp_path: Path) -> None:
    require("valgrind")
    # This import takes long.
    from tests.benchmarks.__main__ import measure, prepare

    run("make", "build", f"ARCH={HOST_ARCHITECTURE}", cwd=ROOT)
    folder = prepare(tmp_path)

    service = measure(folder, "ListPetsFunction", "cold start")
    tuned_handler = measure(folder, ".", "cold start")

    assert service <= 0.67 * tuned_handler
