"""Start programs for tests: `make run` on a free port, and the tools of `tools/locks/`."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.support.waiting import wait_for
from tools import ROOT

ANIMAL_STORE = (sys.executable, "-m", "ops")


@dataclass
class RunningService:
    """A service that answers; `http` sends requests with its key to paths below `/v1`."""

    data: Path
    process: subprocess.Popen[bytes]
    console: Path
    base_url: str
    api_key: str
    http: httpx2.Client

    @property
    def origin(self) -> str:
        """The address of the pages."""
        return self.base_url.removesuffix("/v1")


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of a program, without this machine's settings for AWS and make."""
    machines = ("AWS_", "MAKE")
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(machines)
    } | variables


@contextmanager
def run_service(
    data: Path, *command: str, **variables: str
) -> Iterator[RunningService]:
    """Start the service, wait until it answers, and stop it at the end.

    The command is by default that of `make run`. The variables are for its environment.
    """
    console, program = data / "console", command or (*ANIMAL_STORE, "run")
    own = environment(PORT="0", DATA=str(data), **variables)
    with (
        console.open("w") as out,
        subprocess.Popen(program, cwd=ROOT, env=own, stdout=out, stderr=out) as process,
    ):
        try:
            says = console.read_text
            wait_for(lambda: "Try it" in says() or process.poll() is not None, 240)
            assert process.poll() is None, says()
            base_url, _, _, key, *_ = says().partition("Base URL: ")[2].split()
            # No connections that the service is about to close, which it does after 5 idle seconds.
            limits = httpx2.Limits(keepalive_expiry=2)
            with httpx2.Client(base_url=base_url, timeout=60, limits=limits) as http:
                http.headers["Authorization"] = f"Bearer {key}"
                yield RunningService(data, process, console, base_url, key, http)
        finally:
            process.terminate()


def check_contract(base_url: str, api_key: str, expected_failures: str = "") -> None:
    """Run the contract suite on a service."""
    variables = {
        "BASE_URL": base_url,
        "API_KEY": api_key,
        "EXPECTED_FAILURES": expected_failures,
    }
    output = run("make", "contract", cwd=ROOT, timeout_s=1200, **variables)
    assert "skipped" not in output


def run(
    *command: str | Path, cwd: Path, timeout_s: float = 120, **variables: str
) -> str:
    """Return what a program printed; it is the message of the AssertionError if it fails."""
    done = subprocess.run(
        command,
        check=False,
        cwd=cwd,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def installed(name: str, *programs: str) -> Path:
    """Install one of the environments of `tools/locks/`, if need be; return its `node_modules`.

    Skips the test where npm or another of the programs is missing.
    """
    for program in ("npm", *programs):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    run("make", "-s", f".tools/{name}/.installed", cwd=ROOT, timeout_s=300)
    return ROOT / ".tools" / name / "node_modules"


def link_node_modules(folder: Path) -> None:
    """Link the packages of tools/locks/clients-npm into a folder; skip without Node.js."""
    (folder / "node_modules").symlink_to(installed("clients-npm", "node"))
