"""`make` takes the CPython that is asked for, or none."""

import pytest

from tests.support.processes import run
from tools import ROOT


def test_python_that_is_asked_for_is_not_replaced_by_another() -> None:
    with pytest.raises(AssertionError, match="No usable Python found"):
        run(ROOT / "tools/find-python", cwd=ROOT, PYTHON="/usr/bin/none")
