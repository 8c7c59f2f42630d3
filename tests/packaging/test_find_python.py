"""tools/find-python prints the CPython with which `make` builds its environments."""

import os
import sys
from pathlib import Path

import pytest

from tests.support.processes import run
from tools import ROOT


def test_find_python_fails_if_the_variable_python_names_a_missing_interpreter() -> None:
    with pytest.raises(AssertionError, match="No usable Python found"):
        run(ROOT / "tools/find-python", cwd=ROOT, PYTHON="/usr/bin/none")


@pytest.mark.parametrize("module", ["_sqlite3", "_ssl", "zlib"])
def test_interpreter_without_a_module_is_passed_over(
    tmp_path: Path, module: str
) -> None:
    run_first = f"import sys; sys.modules['{module}'] = None; exec(sys.argv[1])"
    write_python(tmp_path / "first", f'exec {sys.executable} -c "{run_first}" "$2"')
    write_python(tmp_path / "second", f'exec {sys.executable} "$@"')

    assert find_python(tmp_path) == f"{sys.executable}\n"


def test_warning_of_a_shim_is_no_part_of_the_path(tmp_path: Path) -> None:
    write_python(tmp_path / "first", f'echo warning >&2; exec {sys.executable} "$@"')

    assert find_python(tmp_path) == f"{sys.executable}\n"


def write_python(folder: Path, script: str) -> None:
    folder.mkdir()
    (folder / "python3.13").touch(0o755)
    (folder / "python3.13").write_text(f"#!/bin/sh\n{script}\n")


def find_python(folder: Path) -> str:
    path = f"{folder}/first:{folder}/second:{os.environ['PATH']}"
    return run(ROOT / "tools/find-python", cwd=ROOT, PATH=path)
