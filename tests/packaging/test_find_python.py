"""tools/find-python prints the CPython with which `make` builds its environments."""

import os
import sys
from pathlib import Path

import pytest

from tests.support.processes import run
from tools import ROOT


def test_path_without_an_interpreter_is_refused() -> None:
    with pytest.raises(AssertionError, match="No usable Python found"):
        run(ROOT / "tools/find-python", cwd=ROOT, PYTHON="/usr/bin/none")


@pytest.mark.parametrize("module", ["_sqlite3", "_ssl", "zlib"])
def test_interpreter_that_lacks_a_module_is_not_chosen(
    tmp_path: Path, module: str
) -> None:
    code = f"import sys; sys.modules['{module}'] = None; exec(sys.argv[1])"
    scripts = {
        "lacks": f'exec "{sys.executable}" -c "{code}" "$2"',
        "warns": f'echo warning >&2; exec "{sys.executable}" "$@"',
    }
    for name, script in scripts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "python3.13").touch(0o755)
        (tmp_path / name / "python3.13").write_text(f"#!/bin/sh\n{script}\n")
    path = f"{tmp_path}/lacks:{tmp_path}/warns:{os.environ['PATH']}"

    python = run(ROOT / "tools/find-python", cwd=ROOT, PATH=path, PYTHON="")

    assert python == f"{sys.executable}\n"
