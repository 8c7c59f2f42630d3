"""Prepare an account and region for a stage, once, by an administrator: bootstrap.yaml."""

import json
import subprocess
from pathlib import Path

from tools import ROOT
from tools.deployment.release import sam
from tools.deployment.service import DeploymentError
from tools.deployment.stage import Stage

TEMPLATE = ROOT / "bootstrap.yaml"


def identity(repository: str) -> list[str]:
    """Ask GitHub for the numbers of a repository and its owner: both forms of a workflow's identity are trusted."""
    command = ["gh", "api", f"repos/{repository}", "--jq", "{RepositoryId: .id, OwnerId: .owner.id}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise DeploymentError(f"gh api repos/{repository}: {done.stderr.strip()}")
    owner, _, name = repository.partition("/")
    ids = [f"{key}={value}" for key, value in json.loads(done.stdout).items()]
    return [f"Owner={owner}", f"Repository={name}", *ids]


def create(stage: Stage, template: Path, parameters: list[str]) -> None:
    """Create or update the stack of the account."""
    sam(ROOT, "deploy", "--template-file", str(template), "--stack-name", f"{stage.stack}-bootstrap",
        "--capabilities", "CAPABILITY_IAM", "--no-fail-on-empty-changeset",
        "--parameter-overrides", f"Stage={stage.name}", *parameters)  # fmt: skip
