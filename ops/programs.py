"""Starts programs for the commands of a stage: sam, git and the contract suite."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from ops.stage import DeploymentError
from tools import ROOT
from tools.git import git
from tools.packaging.build import SAM

# The contract suite may need these variables to reach a stage, some of them in lower case. The
# suite gets no other variables, and so no credentials.
_NETWORK = {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_DIR", "SSL_CERT_FILE"}
EXPECTED_FAILURES = "tests/contract/expected_failures/aws.yaml"
"""The contract cases that AWS may fail."""


def require_sam() -> None:
    """Raise if sam is not installed, because a deployment needs it only after minutes."""
    if not SAM.exists():
        raise DeploymentError("sam is not installed: make .tools/sam/.installed")


def sam(*arguments: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start sam in a folder; its output goes to the terminal."""
    return subprocess.Popen([SAM, *arguments], cwd=folder)


def is_older(commit: str, other: str) -> bool:
    """Return whether another commit descends from this one; fail if git does not have both."""
    descendants = git(ROOT, "rev-list", "--ancestry-path", f"{commit}..{other}")
    return descendants != b""


def run_suite(folder: Path, base_url: str, key: str, *arguments: str) -> int:
    """Run an unpacked artifact's contract suite against a stage; return pytest's exit status.

    The suite uses this checkout's locked libraries, but none of its code: with -S, Python reads no
    .pth files, which would add the checkout to its path. The suite finds no credentials, in
    environment variables or in the home folder.
    """
    suite = folder / "suite"
    network = {
        name: value for name, value in os.environ.items() if name.upper() in _NETWORK
    }
    environment = network | {
        "CONTRACT_API_KEY": key,
        "CONTRACT_BASE_URL": base_url,
        "CONTRACT_EXPECTED_FAILURES": EXPECTED_FAILURES,
        "HOME": str(suite),
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }
    command = [sys.executable, "-S", "-m", "pytest", "tests/contract", *arguments]
    return subprocess.run(command, cwd=suite, env=environment, check=False).returncode
