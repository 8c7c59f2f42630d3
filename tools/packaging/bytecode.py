"""Compiles code before it is deployed, because Python cannot write bytecode on Lambda."""

import subprocess
import sys
from pathlib import Path

from tools.packaging.targets import PYTHON


def require_python() -> None:
    """Exit unless this is the version of Python that will load the bytecode on Lambda."""
    if not sys.version.startswith(PYTHON):
        raise SystemExit(
            f"The layer's bytecode must be compiled by CPython {PYTHON}. Install it, then: "
            f"rm -rf .venv .tools && make PYTHON=/path/to/python{PYTHON} build"
        )


def compile_tree(directory: Path, deployed_at: str) -> None:
    """Compile the modules below a directory.

    Bytecode names files below `deployed_at`. Packing changes the modification times of sources, so
    the bytecode is `unchecked-hash` (PEP 552): Python loads such bytecode without comparing times.
    """
    # Use a new process, because the bytecode depends on the modules that the compiling process has
    # loaded.
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
