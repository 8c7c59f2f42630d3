"""A deployed service, wherever it runs: issue keys for it, run the contract suite, or leave it up."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tools import ROOT


class DeploymentError(Exception):
    """The service cannot be deployed or tested; the message is for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A running service and two keys that it accepts; `base_url` ends in `/v1`."""

    base_url: str
    keys: tuple[str, str]

    def serve(self) -> None:
        """Say where the service is, and leave it up until SIGINT or SIGTERM."""
        print(f"Base URL: {self.base_url}\nAPI key: {self.keys[0]}\nCtrl-C stops it.", flush=True)
        signal.pause()

    def check_contract(self, expected_failures: Path, *arguments: str) -> None:
        """Run the contract suite, without the environment of this process: it has credentials."""
        command = [sys.executable, "-m", "pytest", "tests/contract", "-p", "no:cacheprovider", "-r", "fE", *arguments]
        environment = {
            "PATH": "/usr/bin:/bin",
            "PYTHONUTF8": "1",
            "CONTRACT_BASE_URL": self.base_url,
            "CONTRACT_API_KEY": self.keys[0],
            "CONTRACT_SECOND_API_KEY": self.keys[1],
            "CONTRACT_EXPECTED_FAILURES": str(expected_failures),
        }
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
            raise DeploymentError(f"the contract suite failed against {self.base_url}")


@contextlib.contextmanager
def temporary_keys(table: str, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Issue two keys with the project's own command, and revoke them at the end."""
    issued = []
    try:
        for label in ("check", "check two"):  # the same each time: every label is a metric
            text = _keys(environment, "issue", "--table", table, "--label", label, "--expires", "1d", "--json")
            issued.append(json.loads(text))
            if "GITHUB_ACTIONS" in os.environ:
                print(f"::add-mask::{issued[-1]['key']}", flush=True)
        yield issued[0]["key"], issued[1]["key"]
    finally:
        for key in issued:
            _keys(environment, "revoke", key["id"], "--table", table)


def _keys(environment: Mapping[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "tools", "keys", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        raise DeploymentError(f"tools keys {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def end_on_signals() -> None:
    """Let SIGTERM and SIGHUP end this process as Ctrl-C does: everything that was started is stopped."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
