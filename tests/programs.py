"""Programs that tests run, and the environments of `locks/` that they are in."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.running import ROOT

OLDEST_NODE = (20, 0)


def run(*command: str | Path, cwd: Path, timeout_s: float = 120, **variables: str) -> str:
    """Run a program; what it printed.

    Raises:
        AssertionError: It failed; the message is what it printed.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | variables
    done = subprocess.run(
        command,
        check=False,
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def installed(name: str) -> Path:
    """Install one of the environments of `locks/`, if need be; its folder."""
    run("make", "-s", f".tools/{name}/.installed", cwd=ROOT, timeout_s=300)
    return ROOT / ".tools" / name


def skip_without_node() -> None:
    """Skip a test where JavaScript cannot be run."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("Node.js and npm are not installed")
    version = run("node", "--version", cwd=ROOT).strip()
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST_NODE:
        pytest.skip(f"Node.js {version} is too old; {OLDEST_NODE[0]} or later is needed")
