"""A deployed service: issue keys for it, and run the contract suite against it."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import boto3

from tools import ROOT
from tools.key_table import KeyAdministrationError, KeyRecord, KeyTable, aws_caller

SAM = str(ROOT / ".tools/sam/bin/sam")
_KEY_LIFE_S = 86_400


class DeploymentError(Exception):
    """The service cannot be deployed or tested; the message is for the person at the terminal."""


def run(*command: str, cwd: Path = ROOT) -> str:
    """Run a command and return what it printed."""
    environment = os.environ | {"SAM_CLI_TELEMETRY": "0"}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise DeploymentError(
            f"{done.stdout}{done.stderr}\nfailed: {' '.join(command)}"
        )
    return done.stdout


# Few, because each label is a metric, but more than one check needs: a stage may be checked twice
# at the same time, and a check that was killed leaves its keys behind until they expire.
_LABELS = [f"check {number}" for number in range(1, 9)]


@contextmanager
def temporary_keys(table: str) -> Iterator[list[str]]:
    """Issue two keys, and revoke them at the end."""
    keys, issued = KeyTable(boto3.client("dynamodb"), table, aws_caller), []
    with ExitStack() as revoking:
        for _ in range(2):
            key, record = _issue(keys)
            revoking.callback(keys.revoke, record.hash)
            issued.append(key)
            if "GITHUB_ACTIONS" in os.environ:
                print(f"::add-mask::{key}", flush=True)
        yield issued


def _issue(keys: KeyTable) -> tuple[str, KeyRecord]:
    for label in _LABELS:
        with suppress(KeyAdministrationError):  # another check has a key of this label
            return keys.issue(label, "test", int(time.time()) + _KEY_LIFE_S)
    raise DeploymentError(f"all labels have valid keys: {_LABELS}")


def check_contract(base_url: str, keys: list[str], place: str, *arguments: str) -> None:
    """Run the contract suite as a place has to pass it, without this process's credentials."""
    if _suite(base_url, keys, place, "-r", "fE", *arguments).returncode:
        raise DeploymentError(f"the contract suite failed against {base_url}")


@contextmanager
def requests_meanwhile(outputs: Mapping[str, str]) -> Iterator[None]:
    """Run the read-only part of the contract suite against a stage, over and over.

    A canary that nobody calls cannot fail. Judging is left to the check that follows, because old
    and new versions answer meanwhile.
    """
    ended = threading.Event()

    def run_again(keys: list[str]) -> None:
        while not ended.is_set():
            _suite(outputs["BaseUrl"], keys, "aws", "-m", "smoke_read_only", quiet=True)

    with (
        temporary_keys(outputs["ApiKeysTableName"]) as keys,
        ThreadPoolExecutor() as pool,
    ):
        pool.submit(run_again, keys)
        try:
            yield
        finally:
            ended.set()


def _suite(
    base_url: str, keys: list[str], place: str, *arguments: str, quiet: bool = False
) -> subprocess.CompletedProcess[bytes]:
    environment = {
        "PATH": "/usr/bin:/bin",
        # In a workflow, where this repository's own packages are not installed.
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "PYTHONUTF8": "1",
        "CONTRACT_BASE_URL": base_url,
        "CONTRACT_API_KEY": keys[0],
        "CONTRACT_SECOND_API_KEY": keys[1],
        "CONTRACT_EXPECTED_FAILURES": f"tests/contract/expected_failures/{place}.yaml",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests/contract",
        "-p",
        "no:cacheprovider",
    ]
    return subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env=environment,
        check=False,
        stdout=subprocess.DEVNULL if quiet else None,
    )
