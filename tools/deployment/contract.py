"""Ask a deployed service the contract suite."""

import os
import sys
import time

from tools import ROOT
from tools.deployment.stage import DeploymentError, Stage

READ_ONLY = ("-m", "smoke_read_only")


def check_contract(stage: Stage) -> None:
    """Refuse a stage that does not pass the suite (production: the cases that only read)."""
    selected = READ_ONLY if stage.name == "production" else ()
    if status := ask(stage, check_key(stage), "-rfE", *selected):
        # https://docs.pytest.org/en/stable/reference/exit-codes.html
        raise DeploymentError(f"the contract suite ended with pytest's status {status}")


def check_key(stage: Stage) -> str:
    """Issue a key of a stage, which expires within an hour."""
    expires = int(time.time()) + 3600
    key, _ = stage.keys().issue("check", "test", expires, is_check=True)
    if "GITHUB_ACTIONS" in os.environ:
        print("::add-mask::", key, sep="")
    return key


def ask(stage: Stage, key: str, *arguments: str) -> int:
    """Run the suite without this process's credentials; return its exit status."""
    known = "tests/contract/expected_failures/aws.yaml"
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONUTF8": "1",
        "CONTRACT_BASE_URL": stage.deployed()["BaseUrl"],
        "CONTRACT_API_KEY": key,
        "CONTRACT_EXPECTED_FAILURES": os.environ.get("EXPECTED_FAILURES", known),
    }
    command = [sys.executable, "-m", "pytest", "tests/contract", *arguments]
    return stage.execute(command, cwd=ROOT, env=environment).returncode
