"""Which interpreter `make` takes."""

import os
import subprocess

from tools import ROOT


def test_a_python_that_is_asked_for_is_not_replaced_by_another() -> None:
    found = subprocess.run(
        ROOT / "tools/find-python",
        env=os.environ | {"PYTHON": "/usr/bin/none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout) == (1, "")
