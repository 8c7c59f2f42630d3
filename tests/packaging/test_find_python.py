"""tools/find-python prints the CPython with which `make` builds its environments."""

import pytest

from tests.support.processes import run
from tools import ROOT


def test_python_variable_with_a_missing_interpreter_is_an_error() -> None:
    with pytest.raises(AssertionError, match="No usable Python found"):
        run(ROOT / "tools/find-python", cwd=ROOT, PYTHON="/usr/bin/none")
