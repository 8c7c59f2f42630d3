"""The programs that the commands of a stage start: sam, git, gh, and the contract suite."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from ops.stage import DeploymentError
from tools import ROOT
from tools.git import git

SAM = ROOT / ".tools/sam/bin/sam"

# What the contract suite may need to reach a stage. Nothing else is passed on: no credentials.
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


def sam(*arguments: str, folder: Path) -> bool:
    """Run sam in a folder; its output goes to the terminal. Return whether it succeeded."""
    environment = os.environ | {"SAM_CLI_TELEMETRY": "0"}
    done = subprocess.run([SAM, *arguments], cwd=folder, env=environment, check=False)
    return done.returncode == 0


def gh(*arguments: str) -> str:
    """Return what GitHub's command line prints; its errors go to the terminal."""
    try:
        return subprocess.check_output(["gh", *arguments], text=True)
    except FileNotFoundError:
        raise DeploymentError("gh is not installed: https://cli.github.com") from None
    except subprocess.CalledProcessError:
        raise DeploymentError(f"failed: gh {' '.join(arguments)}") from None


def is_ancestor(commit: str, other: str) -> bool:
    """Ask git whether a commit is part of another's history."""
    try:
        git(ROOT, "merge-base", "--is-ancestor", commit, other)
    except subprocess.CalledProcessError as error:
        if error.returncode == 1:
            return False
        raise DeploymentError(
            f"git cannot tell whether {commit} is older than {other}, which the stage runs: "
            "git fetch --unshallow origin, or deploy with --allow-older"
        ) from None
    return True


def run_suite(
    suite: Path, base_url: str, key: str, expected_failures: str, *arguments: str
) -> int:
    """Run an artifact's contract suite against a service; return pytest's exit status.

    It has the locked libraries of this checkout and nothing of its code: without `site` (-S)
    Python reads no .pth file, by which the environment has the checkout. It finds no credentials,
    in the environment or in a home folder.
    """
    network = {name: os.environ[name] for name in _NETWORK if name in os.environ}
    environment = network | {
        "CONTRACT_API_KEY": key,
        "CONTRACT_BASE_URL": base_url,
        "CONTRACT_EXPECTED_FAILURES": f"tests/contract/expected_failures/{expected_failures}.yaml",
        "HOME": str(suite),
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }
    command = [sys.executable, "-S", "-m", "pytest", "tests/contract", *arguments]
    return subprocess.run(command, cwd=suite, env=environment, check=False).returncode
