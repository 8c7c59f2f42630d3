"""Compile what ships: on Lambda, code is read-only and would be compiled at each start."""

import subprocess
import sys
from pathlib import Path

from tools.packaging.targets import PYTHON


def require_python() -> None:
    """End the program unless this interpreter writes the bytecode that Lambda's reads."""
    if not sys.version.startswith(PYTHON):
        raise SystemExit(
            f"The layer's bytecode must be compiled by CPython {PYTHON}. Install it, then: "
            f"rm -rf .venv .tools && make PYTHON=/path/to/python{PYTHON} build"
        )


def compile_tree(directory: Path, deployed_at: str) -> None:
    """Compile every module below a directory that has no bytecode yet.

    Tracebacks show the modules below `deployed_at`. The files are `unchecked-hash` (PEP 552):
    Python loads them without checking the source's modification time, which packing changes.
    """
    # In a process of its own, because bytecode depends on what the compiling process has loaded.
    command = [
        sys.executable,
        "-I",
        "-m",
        "compileall",
        "-q",
        "--invalidation-mode=unchecked-hash",
        "-s",
        str(directory),
        "-p",
        deployed_at,
        str(directory),
    ]
    subprocess.run(command, check=True)
