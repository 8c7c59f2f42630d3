"""Starts programs for tests, such as `animal-store run` on a free port."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import httpx2
import pytest

from tests.contract.waiting import wait_for
from tools import ROOT

ANIMAL_STORE = (sys.executable, "-m", "ops")


@dataclass
class RunningService:
    """A running service, and a client with its API key and base URL."""

    data: Path
    process: subprocess.Popen[bytes]
    console: Path
    base_url: str
    api_key: str
    http: httpx2.Client

    @property
    def origin(self) -> str:
        """The base URL without `/v1`."""
        return self.base_url.removesuffix("/v1")


def environment(**variables: str) -> dict[str, str]:
    """Return this process's environment with `variables`, but no settings of AWS and make."""
    inherited_variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "MAKE"))
    }
    return inherited_variables | variables


@contextmanager
def run_service(
    data: Path, *command: str, **variables: str
) -> Iterator[RunningService]:
    """Start the service, wait for its greeting, and stop it at the end.

    Args:
        data: The folder of its store.
        command: The command that starts it; by default, that of `make run`.
        variables: Variables of its environment.
    """
    console = data / "console"
    with (
        console.open("w") as output,
        subprocess.Popen(
            command or (*ANIMAL_STORE, "run"),
            cwd=ROOT,
            env=environment(PORT="0", DATA=str(data), **variables),
            stdout=output,
            stderr=output,
        ) as process,
    ):
        try:
            printed = console.read_text
            wait_for(lambda: "Try it" in printed() or process.poll() is not None, 240)
            assert process.poll() is None, printed()
            base_url, _, _, key, *_ = printed().partition("Base URL: ")[2].split()
            # The service closes idle connections after 5 s, so the client drops them after 2 s.
            limits = httpx2.Limits(keepalive_expiry=2)
            with httpx2.Client(base_url=base_url, timeout=60, limits=limits) as http:
                http.headers["Authorization"] = f"Bearer {key}"
                yield RunningService(data, process, console, base_url, key, http)
        finally:
            process.terminate()


def check_contract(base_url: str, api_key: str, expected_failures: str = "") -> None:
    """Run the contract suite against a service."""
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
    """Return the output of a program.

    Raises:
        AssertionError: The program failed; the message is its output.
    """
    result = subprocess.run(
        command,
        check=False,
        cwd=cwd,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


def clone_checkout(folder: Path) -> None:
    """Clone HEAD into a folder that shares `.venv` and `.tools` with this checkout."""
    run("git", "clone", "--quiet", ROOT, folder, cwd=ROOT)
    for name in (".venv", ".tools"):
        (folder / name).symlink_to(ROOT / name)


def skip(reason: str) -> NoReturn:
    """Skip the test, because this machine lacks something; in CI, fail the test."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def require(*programs: str) -> None:
    """Skip the test if one of the programs is missing; in CI, fail the test."""
    for program in programs:
        if not shutil.which(program):
            skip(f"{program} is not installed")


def install_npm_packages(name: str, *programs: str) -> Path:
    """Install the packages of a folder of `tools/locks/`; return their `node_modules`.

    The test needs npm and the programs (see `require`).
    """
    require("npm", *programs)
    run("make", "-s", f".tools/{name}/.installed", cwd=ROOT, timeout_s=300)
    return ROOT / ".tools" / name / "node_modules"


def link_node_modules(folder: Path) -> None:
    """Link the packages of tools/locks/clients-npm into a folder; skip the test without Node.js."""
    (folder / "node_modules").symlink_to(install_npm_packages("clients-npm", "node"))
