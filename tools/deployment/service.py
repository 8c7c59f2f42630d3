"""A deployed service: issue keys for it, run the contract suite, or leave it up."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import DEVNULL

from tools import ROOT

SAM = str(ROOT / ".tools/sam/bin/sam")


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
        raise DeploymentError(f"{done.stdout}{done.stderr}\nfailed: {' '.join(command)}")
    return done.stdout


@contextmanager
def temporary_keys(table: str) -> Iterator[list[str]]:
    """Issue two keys with the project's own command, and revoke them at the end."""
    command, keys = (sys.executable, "-m", "tools", "keys"), []
    with ExitStack() as revoking:
        for label in ("check", "check two"):  # the same each time: every label is a metric
            issued = json.loads(
                run(
                    *command,
                    "issue",
                    "--table",
                    table,
                    "--label",
                    label,
                    "--expires",
                    "1d",
                    "--json",
                )
            )
            revoking.callback(run, *command, "revoke", issued["id"], "--table", table)
            keys.append(issued["key"])
            if "GITHUB_ACTIONS" in os.environ:
                print(f"::add-mask::{keys[-1]}", flush=True)
        yield keys


def serve_if_asked(base_url: str, keys: list[str]) -> None:
    """Where SERVE is set, say where the service is, and leave it up until SIGINT or SIGTERM."""
    if os.environ.get("SERVE"):
        print(f"Base URL: {base_url}\nAPI key: {keys[0]}\nCtrl-C stops it.", flush=True)
        signal.pause()


def check_contract(base_url: str, keys: list[str], place: str, *arguments: str) -> None:
    """Run the contract suite as it has to pass in a place, without this process's credentials."""
    with _suite(base_url, keys, place, "-r", "fE", *arguments) as process:
        failed = process.wait()
    if failed:
        raise DeploymentError(f"the contract suite failed against {base_url}")


@contextmanager
def requests_meanwhile(outputs: Mapping[str, str]) -> Iterator[None]:
    """Run what only reads of the contract suite against a stage, again and again.

    A canary that nobody calls cannot fail. What the suite says is left to the check that follows:
    old and new versions answer meanwhile.
    """
    ended = threading.Event()

    def run_again(keys: list[str]) -> None:
        while not ended.is_set():
            with _suite(outputs["BaseUrl"], keys, "aws", "-m", "smoke_read_only", stdout=DEVNULL):
                pass

    with temporary_keys(outputs["ApiKeysTableName"]) as keys, ThreadPoolExecutor() as pool:
        pool.submit(run_again, keys)
        try:
            yield
        finally:
            ended.set()


def _suite(
    base_url: str, keys: list[str], place: str, *arguments: str, stdout: int | None = None
) -> subprocess.Popen[bytes]:
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONUTF8": "1",
        "CONTRACT_BASE_URL": base_url,
        "CONTRACT_API_KEY": keys[0],
        "CONTRACT_SECOND_API_KEY": keys[1],
        "CONTRACT_EXPECTED_FAILURES": f"tests/contract/expected_failures/{place}.yaml",
    }
    command = [sys.executable, "-m", "pytest", "tests/contract", "-p", "no:cacheprovider"]
    return subprocess.Popen([*command, *arguments], cwd=ROOT, env=environment, stdout=stdout)
