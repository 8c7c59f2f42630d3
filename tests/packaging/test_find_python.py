"""tools/find-python prints the CPython with which `make` builds its environments."""

import pytest

from tests.support.processes import run
from tools import ROOT


def test_missing_python_of_the_variable_is_not_replaced_by_another() -> None:
    with pytest.raises(AssertionError, match="No usable Python found"):
        run(ROOT / "tools/find-python", cwd=ROOT, PYTHON="/usr/bin/none")
