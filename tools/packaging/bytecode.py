"""Compile what ships to bytecode: code is read-only on Lambda, so each cold start would compile every module again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path


def compile_tree(directory: Path, deployed_at: str) -> None:
    """Compile every module below a directory, and remove the bytecode that lay there.

    Tracebacks show the modules below `deployed_at`. The files are `unchecked-hash` (PEP 552): Python takes them without
    comparing the source's time, which packing changes.
    """
    for cache in sorted(directory.rglob("__pycache__")):
        shutil.rmtree(cache)
    # A process of its own, so that nothing that this one has loaded shows in the files: with a fixed hash seed, and
    # one worker that takes the files in order, the same source gives the same bytes.
    command = [sys.executable, "-s", "-P", "-m", "compileall", "-q", "-f", "-j", "1"]
    command += ["--invalidation-mode", "unchecked-hash", "-s", str(directory), "-p", deployed_at, str(directory)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, env=environment | {"PYTHONHASHSEED": "0"}, check=False)
    if done.returncode:
        raise SystemExit(f"cannot compile {directory}")
