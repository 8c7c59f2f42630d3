"""A deployed service, wherever it runs: issue keys for it, run the contract suite, or leave it up."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

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

    def check_contract(self, place: str, *arguments: str) -> None:
        """Run the contract suite as it has to pass in a place, without the credentials of this process."""
        command = [sys.executable, "-m", "pytest", "tests/contract", "-p", "no:cacheprovider", "-r", "fE", *arguments]
        environment = {
            "PATH": "/usr/bin:/bin",
            "PYTHONUTF8": "1",
            "CONTRACT_BASE_URL": self.base_url,
            "CONTRACT_API_KEY": self.keys[0],
            "CONTRACT_SECOND_API_KEY": self.keys[1],
            "CONTRACT_EXPECTED_FAILURES": f"tests/contract/expected_failures/{place}.yaml",
        }
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
            raise DeploymentError(f"the contract suite failed against {self.base_url}")


@contextlib.contextmanager
def temporary_keys(table: str) -> Iterator[tuple[str, str]]:
    """Issue two keys with the project's own command, and revoke them at the end."""
    issued = []
    try:
        for label in ("check", "check two"):  # the same each time: every label is a metric
            text = _keys("issue", "--table", table, "--label", label, "--expires", "1d", "--json")
            issued.append(json.loads(text))
            if "GITHUB_ACTIONS" in os.environ:
                print(f"::add-mask::{issued[-1]['key']}", flush=True)
        yield issued[0]["key"], issued[1]["key"]
    finally:
        for key in issued:
            _keys("revoke", key["id"], "--table", table)


def _keys(*arguments: str) -> str:
    command = [sys.executable, "-m", "tools", "keys", *arguments]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise DeploymentError(f"tools keys {arguments[0]}: {done.stderr.strip()}")
    return done.stdout
