"""What every place that runs the service on this machine offers: issue keys, run the contract suite, or stay up."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tools import ROOT


class SurfaceError(Exception):
    """The service can not be brought up or tested; the message is for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class Surface:
    """A running service.

    Args:
        base_url: Ends in `/v1`.
        api_key: A key that it accepts.
        second_api_key: Another one.
    """

    base_url: str
    api_key: str
    second_api_key: str

    def serve(self) -> None:
        """Say where the service is, and leave it up until SIGINT or SIGTERM."""
        print(f"Base URL: {self.base_url}\nAPI key: {self.api_key}\nCtrl-C stops it.", flush=True)
        signal.pause()

    def check_contract(self, expected_failures: Path) -> None:
        """Run the contract suite.

        Args:
            expected_failures: The cases that can not pass here; one that does fails the run.

        Raises:
            SurfaceError: The suite failed.
        """
        command = [sys.executable, "-m", "pytest", "tests/contract", "-p", "no:cacheprovider", "-r", "fE"]
        environment = {
            "PATH": "/usr/bin:/bin",
            "PYTHONUTF8": "1",
            "CONTRACT_BASE_URL": self.base_url,
            "CONTRACT_API_KEY": self.api_key,
            "CONTRACT_SECOND_API_KEY": self.second_api_key,
            "CONTRACT_EXPECTED_FAILURES": str(expected_failures),
        }
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
            raise SurfaceError(f"the contract suite failed against {self.base_url}")


def issue_key(table: str, label: str, environment: Mapping[str, str]) -> str:
    """Issue a key with the project's own command.

    Args:
        table: Name of the table of keys.
        label: Whose key it is.
        environment: Of the command: how it finds the table.

    Raises:
        SurfaceError: It refused.
    """
    command = [sys.executable, "-m", "tools", "keys", "issue", "--table", table, "--label", label, "--json"]
    done = subprocess.run(command, cwd=ROOT, env=dict(environment), check=False, capture_output=True, text=True)
    if done.returncode:
        raise SurfaceError(f"no key was issued: {done.stderr.strip()}")
    return str(json.loads(done.stdout)["key"])


def end_on_signals() -> None:
    """Let SIGTERM and SIGHUP end this process as Ctrl-C does: everything that was started is stopped."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
