"""Starts programs for the commands of a stage: sam, git and the contract suite."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from ops.stage import DeploymentError, Stage
from tools import ROOT
from tools.git import git
from tools.packaging.build import SAM

# The contract suite may need these variables to reach a stage. It gets no others, and so no
# credentials.
_NETWORK = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
)


def require_sam() -> None:
    """Raise at once if sam is not installed; a deployment would first need it after minutes."""
    if not SAM.exists():
        raise DeploymentError("sam is not installed: make .tools/sam/.installed")


def sam(*arguments: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start sam in a folder; its output goes to the terminal."""
    environment = os.environ | {"SAM_CLI_TELEMETRY": "0"}
    return subprocess.Popen([SAM, *arguments], cwd=folder, env=environment)


def is_ancestor(commit: str, other: str) -> bool:
    """Return whether a commit is in another's history; fail if git does not have both."""
    missing = git(ROOT, "rev-list", "--max-count=1", commit, f"^{other}")
    return not missing


def run_suite(stage: Stage, folder: Path, key: str, *arguments: str) -> int:
    """Run an unpacked artifact's contract suite against a stage; return pytest's exit status.

    The suite uses this checkout's locked libraries, but none of its code: with -S, Python reads no
    .pth files, which would add the checkout to its path. It cannot find credentials, neither in
    the environment nor in the home folder.
    """
    suite = folder / "suite"
    failures = f"tests/contract/expected_failures/{stage.expected_failures}.yaml"
    network = {name: os.environ[name] for name in _NETWORK if name in os.environ}
    environment = network | {
        "CONTRACT_API_KEY": key,
        "CONTRACT_BASE_URL": stage.required_outputs()["BaseUrl"],
        "CONTRACT_EXPECTED_FAILURES": failures,
        "HOME": str(suite),
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }
    command = [sys.executable, "-S", "-m", "pytest", "tests/contract", *arguments]
    return subprocess.run(command, cwd=suite, env=environment, check=False).returncode
