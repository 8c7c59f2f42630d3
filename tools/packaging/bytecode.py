"""Compile what ships: on Lambda, code is read-only and would be compiled at each start."""

import subprocess
import sys
from pathlib import Path

from tools.packaging.targets import PYTHON


def require_python() -> None:
    """End the program unless this interpreter writes the bytecode that Lambda's reads."""
    if sys.version_info[:2] != PYTHON:
        raise SystemExit(
            "The layer's bytecode must be compiled by CPython 3.13. Install it, then: "
            "rm -rf .venv .tools && make PYTHON=/path/to/python3.13 build"
        )


def compile_tree(directory: Path, deployed_at: str) -> None:
    """Compile every module below a directory, over any bytecode already there.

    Tracebacks show the modules below `deployed_at`. The files are `unchecked-hash` (PEP 552):
    Python takes them without comparing the source's time, which packing changes.
    """
    # A single worker takes the files in order: the same source gives the same bytes.
    command = [
        sys.executable,
        "-I",
        "-m",
        "compileall",
        "-q",
        "-f",
        "-j",
        "1",
        "--invalidation-mode",
        "unchecked-hash",
        "-s",
        str(directory),
        "-p",
        deployed_at,
        str(directory),
    ]
    subprocess.run(command, check=True)
