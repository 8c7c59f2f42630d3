"""A deployed service: issue keys for it, and run the contract suite against it."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tools import ROOT
from tools.deployment.stage import DeploymentError, Stage
from tools.key_table import KeyTable

SAM = str(ROOT / ".tools/sam/bin/sam")
_KEY_LIFE_S = 3_600
_QUIET = ("-qq", "--tb=no", "--no-summary")


@contextmanager
def temporary_key(stage: Stage) -> Iterator[str]:
    """Issue a key of a stage, which expires within an hour."""
    table = stage.outputs()["ApiKeysTableName"]
    keys = KeyTable(stage.client("dynamodb"), table, stage.caller)
    expires = int(time.time()) + _KEY_LIFE_S
    key, _ = keys.issue("check", "test", expires, is_check=True)
    if "GITHUB_ACTIONS" in os.environ:
        print(f"::add-mask::{key}", flush=True)
    yield key


def check_contract(stage: Stage, key: str, place: str, *arguments: str) -> None:
    """Run the contract suite as a place has to pass it."""
    if status := _suite(stage, key, place, "-r", "fE", *arguments):
        # https://docs.pytest.org/en/stable/reference/exit-codes.html
        raise DeploymentError(
            f"the contract suite ended with status {status} (1: tests failed; 5: there are none): "
            f"{stage.name} is not known to work"
        )


@contextmanager
def requests_meanwhile(stage: Stage, pause_s: float = 20) -> Iterator[None]:
    """Run the read-only part of the contract suite against a stage, with pauses.

    A canary that nobody calls cannot fail. Judging is left to the check that follows, because old
    and new versions answer meanwhile.
    """
    ended = threading.Event()

    def run_again(key: str) -> None:
        while not ended.wait(pause_s):
            _suite(stage, key, "aws", *_QUIET, "-m", "smoke_read_only")

    with temporary_key(stage) as key, ThreadPoolExecutor() as pool:
        pool.submit(run_again, key)
        try:
            yield
        finally:
            ended.set()


def _suite(stage: Stage, key: str, place: str, *arguments: str) -> int:
    """Run the suite without this process's credentials; return its exit status."""
    pytest = ["-m", "pytest", "tests/contract", "-p", "no:cacheprovider"]
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONUTF8": "1",
        "CONTRACT_BASE_URL": stage.outputs()["BaseUrl"],
        "CONTRACT_API_KEY": key,
        "CONTRACT_EXPECTED_FAILURES": f"tests/contract/expected_failures/{place}.yaml",
    }
    command = [sys.executable, *pytest, *arguments]
    done = stage.execute(command, cwd=ROOT, env=environment, check=False)
    return done.returncode
