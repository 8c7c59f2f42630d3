"""Starts the programs that the commands for a stage need: sam, git and the contract suite."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from tools import ROOT
from tools.git import git
from tools.packaging.build import SAM

# The contract suite may need these environment variables, in upper or lower case, to reach a stage.
# The suite inherits no other variables, and so no AWS credentials.
_NETWORK_VARIABLES = {
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
}
EXPECTED_FAILURES = "tests/contract/expected_failures/aws.yaml"
"""The file that lists the cases of the contract suite that may fail on AWS."""


def sam(*arguments: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start sam in a folder; the output of sam goes to the terminal."""
    return subprocess.Popen([SAM, *arguments], cwd=folder)


def is_older(commit: str, other: str) -> bool:
    """Return whether `commit` is older than `other`, that is, one of its ancestors.

    Raises:
        CalledProcessError: git cannot tell, and has printed why; perhaps a commit is missing.
    """
    return git(ROOT, "rev-list", "--ancestry-path", f"{commit}..{other}") != b""


def run_suite(folder: Path, base_url: str, key: str, *arguments: str) -> int:
    """Run an unpacked artifact's contract suite against a stage; return pytest's exit status.

    The suite uses this checkout's locked libraries, but not this checkout's code. A .pth file would
    add the code to Python's path; with -S, Python reads no .pth files. The suite finds no AWS
    credentials, neither in environment variables nor in the home folder.
    """
    suite = folder / "suite"
    network = {
        name: value
        for name, value in os.environ.items()
        if name.upper() in _NETWORK_VARIABLES
    }
    environment = network | {
        "CONTRACT_API_KEY": key,
        "CONTRACT_BASE_URL": base_url,
        "CONTRACT_EXPECTED_FAILURES": EXPECTED_FAILURES,
        "HOME": str(suite),
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }
    command = [sys.executable, "-S", "-m", "pytest", "tests/contract", *arguments]
    return subprocess.call(command, cwd=suite, env=environment)
