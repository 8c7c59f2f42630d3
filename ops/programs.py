"""The programs that the commands of a stage start: sam, git and the contract suite."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from ops.stage import DeploymentError, Stage
from tools import ROOT
from tools.git import git

SAM = ROOT / ".tools/sam/bin/sam"

# The contract suite may need these to reach a stage. Nothing else is passed on: no credentials.
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
    """Refuse to begin without the sam command, which a deployment needs only after minutes."""
    if not SAM.exists():
        raise DeploymentError("sam is not installed: make .tools/sam/.installed")


def sam(*arguments: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start sam in a folder; its output goes to the terminal."""
    environment = os.environ | {"SAM_CLI_TELEMETRY": "0"}
    return subprocess.Popen([SAM, *arguments], cwd=folder, env=environment)


def is_ancestor(commit: str, other: str) -> bool:
    """Ask git whether a commit is part of another's history; fail if git does not know it."""
    missing = git(ROOT, "rev-list", "--max-count=1", commit, f"^{other}")
    return not missing


def run_suite(stage: Stage, folder: Path, key: str, *arguments: str) -> int:
    """Run an unpacked artifact's contract suite against a stage; return pytest's exit status.

    It has the locked libraries of this checkout and nothing of its code: without `site` (-S)
    Python reads no .pth file, by which the environment has the checkout. It finds no credentials,
    in the environment or in a home folder.
    """
    suite = folder / "suite"
    failures = f"tests/contract/expected_failures/{stage.expected_failures}.yaml"
    network = {name: os.environ[name] for name in _NETWORK if name in os.environ}
    environment = network | {
        "CONTRACT_API_KEY": key,
        "CONTRACT_BASE_URL": stage.deployed()["BaseUrl"],
        "CONTRACT_EXPECTED_FAILURES": failures,
        "HOME": str(suite),
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }
    command = [sys.executable, "-S", "-m", "pytest", "tests/contract", *arguments]
    return subprocess.run(command, cwd=suite, env=environment, check=False).returncode
