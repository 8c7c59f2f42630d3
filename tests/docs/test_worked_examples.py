"""CONTRIBUTING's worked examples apply, and everything is green with them."""

import sys
from pathlib import Path

import pytest

from tests.support.processes import run
from tools import ROOT

# What `make check` and `make test` run, but for templates and for tests that need a checkout.
CHECKS = """
ruff format --check .
ruff check .
mypy
python -m pytest -q -n 2 -m 'not slow' tests/unit tests/contract tests/reliability \
    tests/template tests/docs tests/clients
"""


@pytest.mark.parametrize("example", ["delete-pet", "color"])
def test_worked_example_is_complete(tmp_path: Path, example: str) -> None:
    run("git", "checkout-index", "--all", f"--prefix={tmp_path}/", cwd=ROOT)
    run("git", "apply", ROOT / f"docs/examples/{example}.patch", cwd=tmp_path)
    run("git", "init", "--quiet", cwd=tmp_path)
    run("git", "add", "--all", cwd=tmp_path)  # tests search what git tracks
    (tmp_path / ".tools").symlink_to(ROOT / ".tools")
    run(
        *("bash", "-euc", CHECKS),
        cwd=tmp_path,
        timeout_s=900,
        PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin",
        PYTHONPATH=f"{tmp_path}:{tmp_path}/clients/python/src",
    )
