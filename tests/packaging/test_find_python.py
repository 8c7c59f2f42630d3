"""tools/find-python prints the CPython with which `make` builds its environments."""

import pytest

from tests.support.processes import run
from tools import ROOT


def test_find_python_fails_if_the_variable_python_names_a_missing_interpreter() -> None:
    with pytest.raises(AssertionError, match="No usable Python found"):
        run(ROOT / "tools/find-python", cwd=ROOT, PYTHON="/usr/bin/none")
