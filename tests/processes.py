"""Start programs for tests: `make run` on a free port and stopped whatever happens, and the tools of `locks/`."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tools import ROOT
from tools.local.folder import Announcement, DataFolder

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
COMMAND = (sys.executable, "-m", "tools")


@dataclass
class RunningService:
    """A service that answers.

    Args:
        data: Its folder.
        process: The program.
        console: The file that its output goes to.
        base_url: Ends in `/v1`.
        http: Sends requests with its key, to paths below its base URL.
    """

    data: Path
    process: subprocess.Popen[bytes]
    console: Path
    base_url: str
    http: httpx.Client

    @property
    def api_key(self) -> str:
        """The key that it made at its first start."""
        return (self.data / "api-key").read_text().strip()

    def tool(self, *arguments: str) -> str:
        """Run another of the tools' commands against this service; its output."""
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=ROOT, env=environment(self.data), check=True, capture_output=True, text=True
        )
        return done.stdout

    def printed(self) -> list[str]:
        """The lines that it has printed."""
        return self.console.read_text().splitlines()

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal; the exit status."""
        self.process.send_signal(number)
        return self.process.wait(STOP_TIMEOUT_S)


def environment(data: Path, **variables: str) -> dict[str, str]:
    """The environment of a program that is to use a folder, whatever the machine's own settings are."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MAKE"))}
    return {**inherited, "PORT": "0", "DATA": str(data), "PYTHONUNBUFFERED": "1", **variables}


@contextmanager
def run_service(data: Path, console: int | None = None, **variables: str) -> Iterator[RunningService]:
    """Start a service and wait until it answers; stop it at the end if it still runs.

    Args:
        data: Its folder, made when missing.
        console: A file descriptor for its output, when that is not to be a file of the folder.
        variables: For its environment.
    """
    data.mkdir(parents=True, exist_ok=True)
    path, folder = data / "console", DataFolder(data)
    with path.open("w") as output:
        process = subprocess.Popen(
            [*COMMAND, "run"],
            cwd=ROOT,
            env=environment(data, **variables),
            stdout=output if console is None else console,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(lambda: _pid(folder.running()) == process.pid or process.poll() is not None, START_TIMEOUT_S)
        announcement = folder.running()
        assert announcement, f"the service ended at once:\n{path.read_text()}"
        headers = {"Authorization": f"Bearer {folder.api_key.read_text().strip()}"}
        with httpx.Client(base_url=announcement.base_url, headers=headers, timeout=30) as http:
            yield RunningService(data, process, path, announcement.base_url, http)
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _pid(announcement: Announcement | None) -> int | None:
    return announcement.pid if announcement else None


def wait_for(condition: Any, timeout_s: float = 10.0) -> None:
    """Wait until a condition holds.

    Raises:
        AssertionError: It did not in time.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


OLDEST_NODE = (20, 0)


def run(*command: str | Path, cwd: Path, timeout_s: float = 120, **variables: str) -> str:
    """Run a program; what it printed.

    Raises:
        AssertionError: It failed; the message is what it printed.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | variables
    done = subprocess.run(
        command,
        check=False,
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def installed(name: str) -> Path:
    """Install one of the environments of `locks/`, if need be; its folder."""
    run("make", "-s", f".tools/{name}/.installed", cwd=ROOT, timeout_s=300)
    return ROOT / ".tools" / name


def skip_without_node() -> None:
    """Skip a test where JavaScript cannot be run."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("Node.js and npm are not installed")
    version = run("node", "--version", cwd=ROOT).strip()
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST_NODE:
        pytest.skip(f"Node.js {version} is too old; {OLDEST_NODE[0]} or later is needed")
